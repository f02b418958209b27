//! The short-link domain: workspaces, domains, links with their slugs, tags and folders, API tokens, clicks.
//!
//! It knows what a link is and keeps it, on SQLite and on Postgres. It refuses to know how links are moved here
//! (no engine, no vendors) and how they are asked for (no HTTP): a redirect is [`resolve()`] plus a rule of the
//! caller's, an import is [`taken()`], [`insert_links`] and [`update_imported`] in the caller's transaction.
//!
//! - Values that are valid once they exist: [`Slug`], [`Host`], [`Destination`], [`Fallback`], [`ApiToken`], …
//! - One at a time, for people and the API: [`create_link`], [`update_link`], [`delete_link`], [`list_links`], …
//! - By the hundred, for imports: [`insert_links`], [`update_imported`], [`undo_job`], …
//! - For redirects: [`resolve()`], [`record_clicks`], and [`changes_since`], by which every node's cache learns what to
//!   forget.
//!
//! Time is an argument. Functions that write take a transaction, and after an error it must be rolled back.
//!
//! ```
//! use crossdock_links::{CaseMode, Destination, Host, Slug};
//!
//! let slug = Slug::from_path("/%C3%9Cber")?;
//! assert_eq!(CaseMode::Insensitive.key(&slug), "über");
//! assert_eq!(Host::new("https://Go.example.com/")?.as_str(), "go.example.com");
//! assert_eq!(Destination::new("https://example.com/ü")?.location(), "https://example.com/%C3%BC");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod destination;
mod error;
mod fallback;
mod geo;
mod host;
mod slug;
mod token;
mod values;

mod domains;
mod link;
mod links;
mod listing;
mod tokens;
mod workspaces;

mod batch;
mod digest;
mod origin;
mod rekey;
mod taken;
mod undo;

mod changes;
mod clicks;
mod resolve;

mod store;

pub use batch::{BATCH_MAX, ImportedUpdate, Lost, Updated, insert_digested, insert_links, update_imported};
pub use changes::{
    CHANGES_KEPT_SECONDS, CHANGES_MAX, Change, Changes, Mark, changes_mark, changes_since, purge_changes,
};
pub use clicks::{
    CLICKS_PER_BATCH, Click, Count, RolledUp, click_totals, clicks_by_hour, record_clicks, roll_up,
};
pub use destination::{DESTINATION_LENGTH_MAX, Destination, DestinationError};
pub use digest::{Digest, digest, digest_of, digest_of_read};
pub use domains::{
    COLLISIONS_NAMED, Domain, DomainSettings, add_domain, all_domains, domain, domain_by_host, domains,
    ensure_domain, update_domain,
};
pub use error::{Error, Result};
pub use fallback::Fallback;
pub use geo::{Country, Geo, GeoError, GeoJson};
pub use host::{Host, HostError};
pub use link::{
    Content, Link, LinkSlug, NewLink, NewOrigin, Place, Provenance, SOURCE_ID_LENGTH_MAX, SourceKey,
    SourceKeyError,
};
pub use links::{
    SlugChoice, add_slug, create_link, delete_link, link_at, link_by_id, link_id_of_external, remove_slug,
    restore_link, update_link,
};
pub use listing::{Filter, NameCount, PAGE_MAX, Page, State, folders, list_links, tags};
pub use origin::{Origin, ReadBack, origins_of, read_imported, refresh_source_digests};
pub use rekey::{Rekey, possible_rekeys};
pub use resolve::{Resolved, resolve, resolve_either};
pub use slug::{GENERATED_LENGTH, SLUG_LENGTH_MAX, Slug, SlugError};
pub use store::ROOM;
pub use taken::{Taken, taken};
pub use token::{ApiToken, Scope, TokenError};
pub use tokens::{
    Caller, TokenInfo, any_token, authenticate, create_token, revoke_token, tokens, touch_token,
};
pub use undo::{Kept, Undone, undo_job};
pub use values::{
    CaseMode, Json, JsonError, NAME_LENGTH_MAX, Name, NameError, Plan, RedirectCode, Text, ValueError,
};
pub use workspaces::{
    DEFAULT_WORKSPACE, Workspace, ensure_default_workspace, ensure_workspace, set_default_domain, set_plan,
    workspace, workspace_by_name, workspaces,
};
