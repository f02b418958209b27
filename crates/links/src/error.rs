//! What can go wrong in this room, by what the caller can do about it.

use crate::values::{JsonError, NameError, ValueError};
use crate::{DestinationError, HostError, SlugError};

/// A failure of the short-link domain.
///
/// After any error of a function that takes a transaction, the transaction must be rolled back, or undone to a
/// savepoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another link has the slug. Choose another one.
    #[error("{host}/{slug} is taken")]
    SlugTaken {
        /// The domain's host.
        host: String,
        /// The slug as the other link has it.
        slug: String,
        /// The other link.
        link_id: db::Id,
    },
    /// The object was changed since the caller read it. Read it again.
    #[error("version {expected} was asked for, but version {current} is current")]
    StaleVersion {
        /// What the caller asked for.
        expected: i64,
        /// What there is.
        current: i64,
    },
    /// There is no such object in this workspace.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Another domain, perhaps of another workspace, has the host.
    #[error("the domain {0} exists already")]
    HostTaken(String),
    /// Another object of the workspace has the name.
    #[error("there is already a {what} named '{name}'")]
    NameTaken {
        /// The kind of object.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Another link of the workspace has the external id.
    #[error("another link has the external id '{0}'")]
    ExternalIdTaken(String),
    /// The object's state does not allow this now.
    #[error("{0}")]
    InvalidState(&'static str),
    /// A domain cannot become case-insensitive while slugs differ by case only.
    #[error("{host} has slugs that differ by case only: {}", pairs(.slugs))]
    CaseCollision {
        /// The domain's host.
        host: String,
        /// Pairs of such slugs, at most [`COLLISIONS_NAMED`](crate::COLLISIONS_NAMED).
        slugs: Vec<(String, String)>,
    },
    /// No free slug was found at random, which says that something is wrong with the chance.
    #[error("no free slug was found at random")]
    NoFreeSlug,
    /// Fix the slug.
    #[error(transparent)]
    Slug(#[from] SlugError),
    /// Fix the destination.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// Fix the host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Fix the name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Fix the word or number.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Fix the JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The database's own failure.
    #[error(transparent)]
    Db(#[from] db::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Db(error.into())
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn pairs(slugs: &[(String, String)]) -> String {
    slugs.iter().map(|(a, b)| format!("{a} and {b}")).collect::<Vec<_>>().join(", ")
}
