//! Links by the hundred: what an import does to its target, set-wise, inside the caller's transaction.
//!
//! A chunk has at most [`BATCH_MAX`] links of one workspace. The order of the statements is the same everywhere
//! (domains, folders, tags, links, slugs), and rows go in the order of their keys, so that two transactions do not
//! wait for each other in a circle.

use std::collections::{BTreeSet, HashMap};

use db::{Id, Timestamp, Tx};

use crate::store::{self, postgres, sqlite};
use crate::{
    Content, Digest, Error, Name, NewLink, NewOrigin, Place, Result, Slug, changes, digest, digest_of,
};

/// The largest chunk: its arrays and JSON stay around a megabyte.
pub const BATCH_MAX: usize = 1_000;

/// A slug that could not be written because another link had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The link that wanted it.
    pub link_id: Id,
    /// The place.
    pub place: Place,
}

/// Inserts links with their slugs, tags, folders and origins; version 1.
///
/// An empty answer means that everything was written. Otherwise the slugs named met another link's (one that came
/// meanwhile, or one of the same chunk): the caller undoes to its savepoint and decides again.
///
/// Writes no [`Change`](crate::Change)s: caches keep "no such slug" for a second at most.
///
/// # Errors
/// [`Error::ExternalIdTaken`]; [`Error::NotFound`] for an unknown domain; [`db::Error::Unique`] if one of the
/// records has come over before.
pub async fn insert_links(
    tx: &mut Tx,
    workspace_id: Id,
    links: &[NewLink],
    now: Timestamp,
) -> Result<Vec<Lost>> {
    let digests: Vec<Digest> = links.iter().map(digest).collect();
    insert_digested(tx, workspace_id, links, &digests, now).await
}

/// As [`insert_links`], for a caller that knows the [`digest`](crate::digest()) of each link already, in the same order.
///
/// # Errors
/// As [`insert_links`].
///
/// # Panics
/// If there are not as many digests as links.
pub async fn insert_digested(
    tx: &mut Tx,
    workspace_id: Id,
    links: &[NewLink],
    digests: &[Digest],
    now: Timestamp,
) -> Result<Vec<Lost>> {
    assert_eq!(links.len(), digests.len(), "each link has its digest");
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let wanted =
        rows_of_slugs(tx, workspace_id, links.iter().map(|link| (link.id, link.slugs.as_slice()))).await?;
    let contents: Vec<&Content> = links.iter().map(|link| &link.content).collect();
    let job = links.iter().find_map(|link| link.origin.as_ref()).map(|origin| origin.job_id);
    let folders = folder_ids(tx, workspace_id, &contents, job).await?;
    let tags = tag_ids(tx, workspace_id, &contents, job).await?;
    let rows: Vec<LinkValues<'_>> = links
        .iter()
        .map(|link| LinkValues {
            id: link.id,
            content: &link.content,
            folder_id: folder_of(&folders, &link.content),
            origin: link.origin.as_ref(),
            version: 1,
        })
        .collect();
    db::dispatch!(tx.conn(), insert_links(workspace_id, &rows, now))
        .map_err(|error| external_id(error, links))?;
    if db::dispatch!(tx.conn(), insert_slugs(&wanted))? < wanted.len() as u64 {
        let lost = db::dispatch!(tx.conn(), lost_slugs(&wanted))?;
        if !lost.is_empty() {
            return Ok(lost);
        }
    }
    let pairs = tag_pairs(&tags, links.iter().map(|link| (link.id, &link.content)));
    if !pairs.is_empty() {
        db::dispatch!(tx.conn(), insert_link_tags(&pairs))?;
    }
    let mut origins: Vec<OriginValues<'_>> = links
        .iter()
        .zip(digests)
        .filter_map(|(link, &digest)| {
            link.origin.as_ref().map(|origin| OriginValues { link_id: link.id, origin, digest, version: 1 })
        })
        .collect();
    // In the order of their index: neighbours are written together.
    origins.sort_unstable_by(|a, b| a.origin.source.cmp(&b.origin.source));
    if !origins.is_empty() {
        db::dispatch!(tx.conn(), insert_origins(workspace_id, &origins))?;
    }
    Ok(Vec::new())
}

/// A link that an import brought, and what it has become at its source.
#[derive(Debug, Clone)]
pub struct ImportedUpdate {
    /// The link.
    pub link_id: Id,
    /// The version it must still have.
    pub version: i64,
    /// What it becomes.
    pub content: Content,
    /// Slugs to add. None is ever taken away: a short URL in print goes on working.
    pub new_slugs: Vec<Place>,
    /// Its origin, with the digest and JSON of today.
    pub origin: NewOrigin,
}

/// What [`update_imported`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Updated {
    /// Links that were written.
    pub updated: Vec<Id>,
    /// Links that had another version or were deleted; nothing of them was written.
    pub stale: Vec<Id>,
    /// Slugs that another link has. If there are any, the caller undoes to its savepoint and decides again.
    pub lost: Vec<Lost>,
}

/// Writes what has changed at the source over links that nobody has edited here.
///
/// # Errors
/// As [`insert_links`].
pub async fn update_imported(
    tx: &mut Tx,
    workspace_id: Id,
    updates: &[ImportedUpdate],
    now: Timestamp,
) -> Result<Updated> {
    if updates.is_empty() {
        return Ok(Updated::default());
    }
    let rewrites: Vec<Rewrite<'_>> =
        updates.iter().map(|u| Rewrite { id: u.link_id, version: u.version, content: &u.content }).collect();
    let job = updates.first().map(|update| update.origin.job_id);
    // Locks the domains first, as everywhere.
    let wanted =
        rows_of_slugs(tx, workspace_id, updates.iter().map(|u| (u.link_id, u.new_slugs.as_slice()))).await?;
    if let Some(job) = job {
        let ids: Vec<Id> = updates.iter().map(|update| update.link_id).collect();
        db::dispatch!(tx.conn(), keep_befores(job, &ids))?;
    }
    let written = rewrite(tx, workspace_id, &rewrites, job, now).await?;
    let stale: Vec<Id> =
        updates.iter().map(|update| update.link_id).filter(|id| !written.contains(id)).collect();
    if let (Some(job), false) = (job, stale.is_empty()) {
        db::dispatch!(tx.conn(), delete_befores(job, &stale))?;
    }
    let wanted: Vec<SlugValues> = wanted.into_iter().filter(|row| written.contains(&row.link_id)).collect();
    if !wanted.is_empty() && db::dispatch!(tx.conn(), insert_slugs(&wanted))? < wanted.len() as u64 {
        let lost = db::dispatch!(tx.conn(), lost_slugs(&wanted))?;
        if !lost.is_empty() {
            return Ok(Updated { lost, ..Updated::default() });
        }
    }
    let updated: Vec<Id> = written.iter().copied().collect();
    let slugs = db::dispatch!(tx.conn(), slugs_of_links(&updated))?;
    let mut places: HashMap<Id, Vec<Place>> = HashMap::new();
    for (link_id, domain_id, slug) in slugs {
        places.entry(link_id).or_default().push(Place { domain_id, slug: Slug::stored(slug) });
    }
    let origins: Vec<OriginValues<'_>> = updates
        .iter()
        .filter(|update| written.contains(&update.link_id))
        .map(|update| OriginValues {
            link_id: update.link_id,
            origin: &update.origin,
            digest: digest_of(&update.content, places.get(&update.link_id).map_or(&[], Vec::as_slice)),
            version: update.version + 1,
        })
        .collect();
    db::dispatch!(tx.conn(), update_origins(workspace_id, &origins))?;
    changes::announce_links(tx, &updated).await?;
    Ok(Updated { updated, stale, lost: Vec::new() })
}

/// One row of `links`.
pub(crate) struct LinkValues<'a> {
    pub(crate) id: Id,
    pub(crate) content: &'a Content,
    pub(crate) folder_id: Option<Id>,
    pub(crate) origin: Option<&'a NewOrigin>,
    /// On insert the first version, on update the one the row must have.
    pub(crate) version: i64,
}

/// One row of `slugs`.
pub(crate) struct SlugValues {
    pub(crate) link_id: Id,
    pub(crate) place: Place,
    pub(crate) key: String,
}

impl SlugValues {
    fn order(&self) -> (Id, &str, Id, &str) {
        (self.place.domain_id, &self.key, self.link_id, self.place.slug.as_str())
    }
}

/// One row of `link_origins`.
pub(crate) struct OriginValues<'a> {
    pub(crate) link_id: Id,
    pub(crate) origin: &'a NewOrigin,
    pub(crate) digest: Digest,
    pub(crate) version: i64,
}

/// One link to write anew.
pub(crate) struct Rewrite<'a> {
    pub(crate) id: Id,
    pub(crate) version: i64,
    pub(crate) content: &'a Content,
}

/// The slugs' rows in the order of their index. Locks the domains, which must be the workspace's,
/// against a change of their case mode.
pub(crate) async fn rows_of_slugs<'p>(
    tx: &mut Tx,
    workspace_id: Id,
    links: impl Iterator<Item = (Id, &'p [Place])> + Clone + Send,
) -> Result<Vec<SlugValues>> {
    let ids = store::domains_of(links.clone().flat_map(|(_, places)| places));
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let modes = db::dispatch!(tx.conn(), lock_case_modes(workspace_id, &ids))?;
    let mut rows = Vec::new();
    for (link_id, places) in links {
        for place in places {
            rows.push(SlugValues { link_id, key: store::key(&modes, place)?, place: place.clone() });
        }
    }
    rows.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
    rows.dedup_by(|a, b| a.link_id == b.link_id && a.place == b.place);
    Ok(rows)
}

/// Writes contents over links that still have their version; the ids of those that had.
pub(crate) async fn rewrite(
    tx: &mut Tx,
    workspace_id: Id,
    rewrites: &[Rewrite<'_>],
    job: Option<Id>,
    now: Timestamp,
) -> Result<BTreeSet<Id>> {
    let contents: Vec<&Content> = rewrites.iter().map(|rewrite| rewrite.content).collect();
    let folders = folder_ids(tx, workspace_id, &contents, job).await?;
    let tags = tag_ids(tx, workspace_id, &contents, job).await?;
    let rows: Vec<LinkValues<'_>> = rewrites
        .iter()
        .map(|rewrite| LinkValues {
            id: rewrite.id,
            content: rewrite.content,
            folder_id: folder_of(&folders, rewrite.content),
            origin: None,
            version: rewrite.version,
        })
        .collect();
    let written = db::dispatch!(tx.conn(), rewrite_links(workspace_id, &rows, now))?;
    let written: BTreeSet<Id> = written.into_iter().collect();
    let ids: Vec<Id> = written.iter().copied().collect();
    db::dispatch!(tx.conn(), delete_link_tags(&ids))?;
    let pairs = tag_pairs(
        &tags,
        rewrites
            .iter()
            .filter(|rewrite| written.contains(&rewrite.id))
            .map(|rewrite| (rewrite.id, rewrite.content)),
    );
    if !pairs.is_empty() {
        db::dispatch!(tx.conn(), insert_link_tags(&pairs))?;
    }
    Ok(written)
}

type Names = HashMap<String, Id>;

async fn folder_ids(tx: &mut Tx, workspace_id: Id, contents: &[&Content], job: Option<Id>) -> Result<Names> {
    let names: BTreeSet<&str> =
        contents.iter().filter_map(|content| content.folder.as_ref()).map(Name::as_str).collect();
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return Ok(Names::new());
    }
    let known: Names = db::dispatch!(tx.conn(), folder_ids(workspace_id, &names))?;
    let Some(missing) = missing(&known, &names) else { return Ok(known) };
    db::dispatch!(tx.conn(), insert_folders(workspace_id, &missing, job))?;
    db::dispatch!(tx.conn(), folder_ids(workspace_id, &names))
}

async fn tag_ids(tx: &mut Tx, workspace_id: Id, contents: &[&Content], job: Option<Id>) -> Result<Names> {
    let names: BTreeSet<&str> = contents.iter().flat_map(|content| &content.tags).map(Name::as_str).collect();
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return Ok(Names::new());
    }
    let known: Names = db::dispatch!(tx.conn(), tag_ids(workspace_id, &names))?;
    let Some(missing) = missing(&known, &names) else { return Ok(known) };
    db::dispatch!(tx.conn(), insert_tags(workspace_id, &missing, job))?;
    db::dispatch!(tx.conn(), tag_ids(workspace_id, &names))
}

/// The names without an id, each with a new one; `None` if there are none.
fn missing<'n>(known: &Names, names: &[&'n str]) -> Option<Vec<(Id, &'n str)>> {
    let missing: Vec<(Id, &str)> =
        names.iter().filter(|name| !known.contains_key(**name)).map(|name| (Id::new(), *name)).collect();
    (!missing.is_empty()).then_some(missing)
}

fn folder_of(folders: &Names, content: &Content) -> Option<Id> {
    content.folder.as_ref().and_then(|name| folders.get(name.as_str())).copied()
}

/// Each pair of link and tag once, in the order of the key.
fn tag_pairs<'c>(tags: &Names, links: impl Iterator<Item = (Id, &'c Content)>) -> Vec<(Id, Id)> {
    let mut pairs: Vec<(Id, Id)> = links
        .flat_map(|(id, content)| content.tags.iter().map(move |tag| (id, tag)))
        .filter_map(|(id, tag)| tags.get(tag.as_str()).map(|tag_id| (id, *tag_id)))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Postgres names the index, SQLite its columns.
fn external_id(error: Error, links: &[NewLink]) -> Error {
    match error {
        Error::Db(db::Error::Unique { constraint, .. }) if constraint.contains("external_id") => {
            let names: Vec<&str> =
                links.iter().filter_map(|link| link.content.external_id.as_ref()).map(Name::as_str).collect();
            Error::ExternalIdTaken(names.join(", "))
        }
        other => other,
    }
}
