//! What an incoming link is, whichever vendor it comes from.

use std::collections::BTreeMap;

use db::Timestamp;
use engine::Reason;

/// A link as a vendor's record describes it, before any rule of the target is applied.
///
/// Texts are as received: the destination byte for byte, slugs as the vendor writes them (percent-decoded once
/// where they came inside a URL).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IncomingLink {
    /// The vendor's immutable id.
    pub source_id: String,
    /// Every address under which the vendor answers for this link, the primary one first.
    pub addresses: Vec<IncomingAddress>,
    /// Why further addresses of this link cannot be read, one reason each; they are failed slugs of the link.
    pub bad_addresses: Vec<Reason>,
    /// Where it leads; empty if the record has none.
    pub destination: String,
    /// The title, if any.
    pub title: Option<String>,
    /// Notes or a description, if any.
    pub notes: Option<String>,
    /// Tag names in the vendor's order.
    pub tags: Vec<String>,
    /// A folder's name.
    pub folder: Option<String>,
    /// Whether it is archived; an archived link still redirects.
    pub archived: bool,
    /// Whether it is switched off at the vendor.
    pub disabled: bool,
    /// Whether the vendor asks visitors for a password, which does not come over.
    pub password_protected: bool,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it stops redirecting.
    pub expires_at: Option<Timestamp>,
    /// Where visitors go after it expired.
    pub expired_url: Option<String>,
    /// Where visitors with iOS go.
    pub ios_url: Option<String>,
    /// Where visitors with Android go.
    pub android_url: Option<String>,
    /// Where visitors of a country (ISO 3166-1 alpha-2, upper case) go.
    pub geo: BTreeMap<String, String>,
    /// Parameters the vendor adds to the destination when it redirects.
    pub utm: BTreeMap<String, String>,
    /// Whether the visitor's query is passed on, where the vendor says so.
    pub query_passthrough: Option<bool>,
    /// The status code the vendor redirects with, where it says so.
    pub redirect_code: Option<u16>,
    /// Clicks the vendor counted, where the record itself says so.
    pub clicks: Option<i64>,
    /// The vendor's record as JSON text with its secrets taken out.
    pub provenance: String,
    /// What of this record has no place here, each as a short stable word (`dynamic_routing`, `qr_codes`).
    pub left_behind: Vec<&'static str>,
}

/// One address of a link at the vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingAddress {
    /// The host, lower case.
    pub host: String,
    /// The path after the host's slash, percent-decoded once; may hold `/`.
    pub slug: String,
}

/// What a vendor's record turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// A link to bring over.
    Link(Box<IncomingLink>),
    /// Something that is left out on purpose (deleted at the vendor), with the reason.
    Filtered {
        /// The vendor's id.
        source_id: String,
        /// What people know it by.
        label: Option<String>,
        /// Why.
        reason: Reason,
    },
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The vendor's id, if it could be made out.
    pub source_id: Option<String>,
    /// What people know it by, if it could be made out.
    pub label: Option<String>,
    /// Why, with the place and the value.
    pub reason: Reason,
}

/// Turns a vendor's raw records into incoming links. Pure: the same bytes always give the same answer.
pub trait Mapper: Send + Sync {
    /// The vendor's word in tables, tags and log lines, for example `bitly`.
    fn vendor(&self) -> &'static str;

    /// Hosts that belong to the vendor and so can never be kept (`bit.ly`), lower case.
    fn vendor_hosts(&self) -> &'static [&'static str];

    /// What does not come over from this vendor, one sentence each, for every surface that starts or reports an
    /// import.
    fn left_behind(&self) -> &'static [&'static str];

    /// Reads one record.
    ///
    /// # Errors
    /// [`Unreadable`] with a reason; the record goes to quarantine whole.
    fn map(&self, raw: &[u8]) -> Result<Incoming, Unreadable>;
}
