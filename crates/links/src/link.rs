//! What a link is.

use db::{Id, Timestamp};

use crate::values::{Json, Name, Text};
use crate::{Destination, GeoJson, Host, RedirectCode, Slug};

/// What people can set on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Where it leads.
    pub destination: Destination,
    /// A title.
    pub title: Option<Text>,
    /// Notes.
    pub notes: Option<Text>,
    /// The folder's name; made if it is missing.
    pub folder: Option<Name>,
    /// Its tags; missing ones are made. Order and repetitions mean nothing.
    pub tags: Vec<Name>,
    /// The status of its redirect; `None` for the domain's.
    pub redirect_code: Option<RedirectCode>,
    /// Whether the visitor's query is merged into the destination's.
    pub query_passthrough: bool,
    /// Switched off, it answers as if it did not exist.
    pub enabled: bool,
    /// Put away by its owner; it redirects as before.
    pub archived: bool,
    /// From then on it is expired.
    pub expires_at: Option<Timestamp>,
    /// Where an expired link leads; `None` for the domain's choice.
    pub expired_url: Option<Destination>,
    /// Protected by a password at its source, which does not come over: it stays closed.
    pub password_protected: bool,
    /// Where visitors on iOS go.
    pub ios_url: Option<Destination>,
    /// Where visitors on Android go.
    pub android_url: Option<Destination>,
    /// Destinations by country; made of a [`Geo`](crate::Geo) by `into`.
    pub geo: Option<GeoJson>,
    /// Parameters to add.
    pub utm: Option<Json>,
    /// Clicks counted by another service.
    pub imported_clicks: Option<i64>,
    /// The caller's own key, unique in the workspace.
    pub external_id: Option<Name>,
    /// When it was made, here or at its source.
    pub created_at: Timestamp,
}

impl Content {
    /// An enabled link without anything else.
    pub fn to(destination: Destination, created_at: Timestamp) -> Self {
        Self {
            destination,
            title: None,
            notes: None,
            folder: None,
            tags: Vec::new(),
            redirect_code: None,
            query_passthrough: true,
            enabled: true,
            archived: false,
            expires_at: None,
            expired_url: None,
            password_protected: false,
            ios_url: None,
            android_url: None,
            geo: None,
            utm: None,
            imported_clicks: None,
            external_id: None,
            created_at,
        }
    }
}

/// A slug on a domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The domain.
    pub domain_id: Id,
    /// The slug.
    pub slug: Slug,
}

/// A link as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its id.
    pub id: Id,
    /// The workspace it belongs to.
    pub workspace_id: Id,
    /// What people can set.
    pub content: Content,
    /// Its slugs, by host and slug. Those of a deleted link are what restoring it would take.
    pub slugs: Vec<LinkSlug>,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Set if it is deleted.
    pub deleted_at: Option<Timestamp>,
    /// 1 at first; every change adds 1.
    pub version: i64,
    /// Where it was imported from.
    pub provenance: Option<Provenance>,
}

/// A slug of a link, with the host that makes it a short URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkSlug {
    /// The domain's host.
    pub host: Host,
    /// The slug.
    pub slug: Slug,
    /// The domain.
    pub domain_id: Id,
}

/// Where an imported link came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The vendor's name.
    pub vendor: String,
    /// The vendor's id of the link.
    pub source_id: String,
    /// The job that made the link.
    pub import_job: Id,
}

/// A link to insert.
#[derive(Debug, Clone)]
pub struct NewLink {
    /// Made by the caller: [`Id::new`].
    pub id: Id,
    /// What people can set.
    pub content: Content,
    /// Its slugs.
    pub slugs: Vec<Place>,
    /// Where it was imported from.
    pub origin: Option<NewOrigin>,
}

/// The identity of an imported link and what the source sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrigin {
    /// Vendor and id there.
    pub source: SourceKey,
    /// The target domain of the import.
    pub domain_id: Id,
    /// The job.
    pub job_id: Id,
    /// Digest of what the source sent, at most 64 bytes.
    pub source_digest: Vec<u8>,
    /// The vendor's record, without secrets.
    pub source_json: Option<Text>,
}

/// The longest vendor name, in bytes.
const VENDOR_LENGTH_MAX: usize = 50;
/// The longest id at a vendor, in bytes: what an entry of a Postgres index leaves for it.
pub const SOURCE_ID_LENGTH_MAX: usize = 2_500;

/// A vendor's name and its id of a link.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceKey {
    vendor: String,
    id: String,
}

/// Why there is no [`SourceKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceKeyError {
    /// A part is empty.
    #[error("the id of the record at its source is empty")]
    Empty,
    /// Longer than [`SOURCE_ID_LENGTH_MAX`].
    #[error("the id of the record at its source has {0} bytes, more than {SOURCE_ID_LENGTH_MAX}")]
    TooLong(usize),
    /// U+0000, which Postgres cannot keep and which must not be replaced in an identity.
    #[error("the id of the record at its source contains U+0000")]
    Nul,
}

impl SourceKey {
    /// Checks both.
    ///
    /// # Errors
    /// [`SourceKeyError`] if one cannot be stored as an identity.
    pub fn new(vendor: &str, id: &str) -> Result<Self, SourceKeyError> {
        if vendor.is_empty() || id.is_empty() {
            return Err(SourceKeyError::Empty);
        }
        if vendor.len() > VENDOR_LENGTH_MAX || id.len() > SOURCE_ID_LENGTH_MAX {
            return Err(SourceKeyError::TooLong(id.len()));
        }
        if vendor.contains('\0') || id.contains('\0') {
            return Err(SourceKeyError::Nul);
        }
        Ok(Self { vendor: vendor.to_owned(), id: id.to_owned() })
    }

    /// The vendor's name.
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// The id there.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Both as one text: what imports call the record by.
    pub fn reference(&self) -> String {
        format!("{}:{}", self.vendor, self.id)
    }

    pub(crate) fn stored(vendor: String, id: String) -> Self {
        Self { vendor, id }
    }
}
