//! Pages of links, newest id first.

use db::{Conn, Id, Timestamp};

use crate::store::{postgres, sqlite};
use crate::{Error, Link, Name, Result};

/// The largest page.
pub const PAGE_MAX: u32 = 1_000;

/// Which links of a workspace. Each filter that selects few links has an index; those given beside it are checked
/// link by link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// With a slug on this domain.
    pub domain_id: Option<Id>,
    /// With this tag.
    pub tag: Option<Name>,
    /// In this folder.
    pub folder: Option<Name>,
    /// Made by this job.
    pub import_job: Option<Id>,
    /// In this state; by default all that are not deleted.
    pub state: Option<State>,
    /// Made at this instant or later.
    pub created_from: Option<Timestamp>,
    /// Made before this instant.
    pub created_before: Option<Timestamp>,
}

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Enabled, neither archived nor expired.
    Active,
    /// Put away.
    Archived,
    /// Switched off.
    Disabled,
    /// Past its time.
    Expired,
    /// Deleted, not yet gone.
    Deleted,
}

/// A page of links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The links, newest id first.
    pub links: Vec<Link>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Id>,
}

/// What a statement walks along: the narrowest of the filters that have an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    Workspace,
    Domain,
    Tag,
    Folder,
    Import,
    Archived,
    Disabled,
    Expired,
    Deleted,
}

impl Filter {
    pub(crate) fn walk(&self) -> Walk {
        if self.import_job.is_some() {
            return Walk::Import;
        }
        if self.tag.is_some() {
            return Walk::Tag;
        }
        if self.folder.is_some() {
            return Walk::Folder;
        }
        match self.state {
            Some(State::Deleted) => return Walk::Deleted,
            Some(State::Archived) => return Walk::Archived,
            Some(State::Disabled) => return Walk::Disabled,
            Some(State::Expired) => return Walk::Expired,
            Some(State::Active) | None => {}
        }
        if self.domain_id.is_some() { Walk::Domain } else { Walk::Workspace }
    }

    /// The word that the statements know.
    pub(crate) fn state_word(&self) -> &'static str {
        match self.state {
            None => "",
            Some(State::Active) => "active",
            Some(State::Archived) => "archived",
            Some(State::Disabled) => "disabled",
            Some(State::Expired) => "expired",
            Some(State::Deleted) => "deleted",
        }
    }
}

/// A page of a workspace's links with ids below `before`.
///
/// # Errors
/// The database's.
pub async fn list_links(
    conn: Conn<'_>,
    workspace_id: Id,
    filter: &Filter,
    before: Option<Id>,
    limit: u32,
    now: Timestamp,
) -> Result<Page> {
    if limit == 0 {
        return Err(Error::InvalidState("a page has at least one link"));
    }
    let limit = limit.min(PAGE_MAX);
    let before = before.unwrap_or(Id::from_stored(i64::MAX));
    // One more than asked for tells whether there is a next page.
    let mut links = db::dispatch!(conn, list_links(workspace_id, filter, before, i64::from(limit) + 1, now))?
        .assemble()?;
    links.reverse();
    let more = links.len() > limit as usize;
    links.truncate(limit as usize);
    let next = if more { links.last().map(|link| link.id) } else { None };
    Ok(Page { links, next })
}

/// A tag or a folder and how many live links it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameCount {
    /// Its name.
    pub name: Name,
    /// Its live links.
    pub links: u64,
}

/// A workspace's tags, by name.
///
/// # Errors
/// The database's.
pub async fn tags(conn: Conn<'_>, workspace_id: Id) -> Result<Vec<NameCount>> {
    Ok(db::dispatch!(conn, tag_counts(workspace_id))?.into_iter().map(count).collect())
}

/// A workspace's folders, by name.
///
/// # Errors
/// The database's.
pub async fn folders(conn: Conn<'_>, workspace_id: Id) -> Result<Vec<NameCount>> {
    Ok(db::dispatch!(conn, folder_counts(workspace_id))?.into_iter().map(count).collect())
}

fn count((name, links): (String, i64)) -> NameCount {
    NameCount { name: Name::stored(name), links: u64::try_from(links).unwrap_or(0) }
}
