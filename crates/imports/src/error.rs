//! What can go wrong when an import is asked for.

/// A failure of this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such import in this workspace.
    #[error("there is no such import")]
    NotFound,
    /// The word is not a vendor Crossdock knows.
    #[error("'{0}' is not a vendor Crossdock can import from; it knows {1}")]
    UnknownVendor(String, String),
    /// A domain of the request does not exist in this workspace.
    #[error("the domain {0} does not exist in this workspace; add it first")]
    UnknownDomain(String),
    /// A domain that slugs were to go to belongs to the vendor.
    #[error("{0} belongs to the vendor and cannot answer for you; name a domain of yours")]
    VendorsDomain(String),
    /// The state does not allow this now.
    #[error("an import that is {from} cannot be {wanted}")]
    State {
        /// The state it is in.
        from: engine::Status,
        /// What was asked for.
        wanted: &'static str,
    },
    /// The stored parameters cannot be read, for example those of a newer version.
    #[error("the stored parameters of import {0} cannot be read: {1}")]
    Parameters(engine::JobId, String),
    /// The source does not answer what it was asked beforehand.
    #[error(transparent)]
    Source(#[from] engine::SourceError),
    /// The link domain refused something.
    #[error(transparent)]
    Links(#[from] links::Error),
    /// The database's own failure.
    #[error(transparent)]
    Db(#[from] db::Error),
}

/// A result of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;
