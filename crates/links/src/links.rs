//! One link at a time: what the API and people do.

use db::{Conn, Id, Timestamp, Tx};
use rand::RngCore;

use crate::batch::{self, Rewrite};
use crate::slug::GENERATED_LENGTH;
use crate::store::{postgres, sqlite};
use crate::{Content, Domain, Error, Link, NewLink, Place, Result, Slug, changes, insert_links, taken};

/// Tries before giving up finding a free random slug; each is one character longer than the one before.
const GENERATE_TRIES: usize = 6;

/// How a new link gets its slug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlugChoice {
    /// This one.
    Given(Slug),
    /// One at random.
    Random,
}

/// Creates a link with one slug.
///
/// # Errors
/// [`Error::SlugTaken`] names the link that has it; [`Error::ExternalIdTaken`]; [`Error::InvalidState`] for a
/// reserved slug or a destination that is the new short URL itself.
pub async fn create_link(
    tx: &mut Tx,
    domain: &Domain,
    choice: SlugChoice,
    content: Content,
    now: Timestamp,
    chance: &mut (dyn RngCore + Send),
) -> Result<Link> {
    let id = Id::new();
    let slug = match choice {
        SlugChoice::Given(slug) => slug,
        SlugChoice::Random => random_slug(tx, domain, chance).await?,
    };
    check_slug(domain, &slug, &content)?;
    let place = Place { domain_id: domain.id, slug };
    refuse_taken(tx, domain, &place).await?;
    let link = NewLink { id, content, slugs: vec![place.clone()], origin: None };
    if !insert_links(tx, domain.workspace_id, std::slice::from_ref(&link), now).await?.is_empty() {
        // Somebody was faster. What was inserted of this link goes with the caller's rollback.
        refuse_taken(tx, domain, &place).await?;
        return Err(Error::Db(retry()));
    }
    changes::announce_links(tx, &[id]).await?;
    link_by_id(tx.conn(), domain.workspace_id, id).await
}

/// The other one has gone again between two statements: the whole transaction may be run once more.
fn retry() -> db::Error {
    db::Error::Retry(sqlx::Error::RowNotFound)
}

async fn random_slug(tx: &mut Tx, domain: &Domain, chance: &mut (dyn RngCore + Send)) -> Result<Slug> {
    for longer in 0..GENERATE_TRIES {
        let slug = Slug::generate(chance, GENERATED_LENGTH + longer);
        let place = Place { domain_id: domain.id, slug };
        if taken(tx.conn(), std::slice::from_ref(&place)).await?.is_empty() {
            return Ok(place.slug);
        }
    }
    Err(Error::NoFreeSlug)
}

fn check_slug(domain: &Domain, slug: &Slug, content: &Content) -> Result<()> {
    if slug.reserved().is_some() {
        return Err(Error::InvalidState("the slug is reserved for what browsers ask every host for"));
    }
    if content.destination.is_self_reference(&domain.host, slug, domain.settings.case_mode) {
        return Err(Error::InvalidState("the destination is the short URL itself"));
    }
    Ok(())
}

async fn refuse_taken(tx: &mut Tx, domain: &Domain, place: &Place) -> Result<()> {
    match taken(tx.conn(), std::slice::from_ref(place)).await?.into_iter().next() {
        Some(taken) => Err(Error::SlugTaken {
            host: domain.host.to_string(),
            slug: taken.slug.to_string(),
            link_id: taken.link_id,
        }),
        None => Ok(()),
    }
}

/// A workspace's link, deleted ones too.
///
/// # Errors
/// [`Error::NotFound`], also for another workspace's link.
pub async fn link_by_id(conn: Conn<'_>, workspace_id: Id, id: Id) -> Result<Link> {
    let links = db::dispatch!(conn, read_links(&[id]))?.assemble()?;
    links.into_iter().find(|link| link.workspace_id == workspace_id).ok_or(Error::NotFound("link"))
}

/// The live link at a slug of a domain.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn link_at(tx: &mut Tx, workspace_id: Id, place: &Place) -> Result<Link> {
    let taken = taken(tx.conn(), std::slice::from_ref(place)).await?;
    let taken = taken.into_iter().next().ok_or(Error::NotFound("link"))?;
    link_by_id(tx.conn(), workspace_id, taken.link_id).await
}

/// The link with the caller's own key, deleted ones too.
///
/// # Errors
/// The database's.
pub async fn link_id_of_external(conn: Conn<'_>, workspace_id: Id, external_id: &str) -> Result<Option<Id>> {
    db::dispatch!(conn, link_id_of_external(workspace_id, external_id))
}

/// Changes a live link. `edit` gets what the link is now and may refuse.
///
/// # Errors
/// [`Error::StaleVersion`] if `expected` is given and not current; whatever `edit` returns.
pub async fn update_link(
    tx: &mut Tx,
    workspace_id: Id,
    id: Id,
    expected: Option<i64>,
    now: Timestamp,
    edit: impl FnOnce(&mut Content) -> Result<()>,
) -> Result<Link> {
    let mut link = lock_live(tx, workspace_id, id, expected).await?;
    edit(&mut link.content)?;
    for place in &link.slugs {
        let case = crate::domain(tx.conn(), workspace_id, place.domain_id).await?.settings.case_mode;
        if link.content.destination.is_self_reference(&place.host, &place.slug, case) {
            return Err(Error::InvalidState("the destination is the short URL itself"));
        }
    }
    let rewrite = Rewrite { id, version: link.version, content: &link.content };
    let external_id = link.content.external_id.clone();
    let written =
        batch::rewrite(tx, workspace_id, &[rewrite], None, now).await.map_err(|error| match error {
            Error::Db(db::Error::Unique { constraint, .. }) if constraint.contains("external_id") => {
                Error::ExternalIdTaken(external_id.map(|name| name.to_string()).unwrap_or_default())
            }
            other => other,
        })?;
    debug_assert!(written.contains(&id), "the row is locked and has this version");
    changes::announce_links(tx, &[id]).await?;
    link_by_id(tx.conn(), workspace_id, id).await
}

/// Gives a live link another slug.
///
/// # Errors
/// As [`create_link`].
pub async fn add_slug(tx: &mut Tx, domain: &Domain, id: Id, slug: Slug, now: Timestamp) -> Result<Link> {
    let link = lock_live(tx, domain.workspace_id, id, None).await?;
    check_slug(domain, &slug, &link.content)?;
    let places = [Place { domain_id: domain.id, slug }];
    refuse_taken(tx, domain, &places[0]).await?;
    let rows = batch::rows_of_slugs(tx, domain.workspace_id, [(id, places.as_slice())].into_iter()).await?;
    if db::dispatch!(tx.conn(), insert_slugs(&rows))? == 0 {
        refuse_taken(tx, domain, &places[0]).await?;
        return Err(Error::Db(retry()));
    }
    db::dispatch!(tx.conn(), raise_version(id, now))?;
    changes::announce_links(tx, &[id]).await?;
    link_by_id(tx.conn(), domain.workspace_id, id).await
}

/// Takes a slug from a live link.
///
/// # Errors
/// [`Error::InvalidState`] if it is the link's only one; [`Error::NotFound`] if it is not its slug.
pub async fn remove_slug(
    tx: &mut Tx,
    workspace_id: Id,
    id: Id,
    place: &Place,
    now: Timestamp,
) -> Result<Link> {
    let link = lock_live(tx, workspace_id, id, None).await?;
    if !link.slugs.iter().any(|slug| slug.domain_id == place.domain_id && slug.slug == place.slug) {
        return Err(Error::NotFound("slug"));
    }
    if link.slugs.len() == 1 {
        return Err(Error::InvalidState("a link keeps at least one slug; delete the link instead"));
    }
    // Before the slug's row is gone.
    changes::announce_links(tx, &[id]).await?;
    db::dispatch!(tx.conn(), delete_slug(id, place))?;
    db::dispatch!(tx.conn(), raise_version(id, now))?;
    link_by_id(tx.conn(), workspace_id, id).await
}

/// Deletes a link: its slugs are free, it can be restored.
///
/// # Errors
/// [`Error::StaleVersion`]; [`Error::NotFound`] if it does not exist or is deleted.
pub async fn delete_link(
    tx: &mut Tx,
    workspace_id: Id,
    id: Id,
    expected: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    lock_live(tx, workspace_id, id, expected).await?;
    db::dispatch!(tx.conn(), set_deleted(id, Some(now), now))?;
    changes::announce_links(tx, &[id]).await
}

/// Restores a deleted link with all its slugs. Uses the transaction's savepoint.
///
/// # Errors
/// [`Error::SlugTaken`] if another link has one of them by now; [`Error::InvalidState`] if it is not deleted.
pub async fn restore_link(
    tx: &mut Tx,
    workspace_id: Id,
    id: Id,
    expected: Option<i64>,
    now: Timestamp,
) -> Result<Link> {
    let link = lock(tx, workspace_id, id, expected).await?;
    if link.deleted_at.is_none() {
        return Err(Error::InvalidState("the link is not deleted"));
    }
    let mut places = Vec::with_capacity(link.slugs.len());
    for slug in link.slugs {
        let domain = crate::domain(tx.conn(), workspace_id, slug.domain_id).await?;
        places.push((domain, Place { domain_id: slug.domain_id, slug: slug.slug }));
    }
    refuse_any_taken(tx, &places).await?;
    // Postgres answers nothing more in a transaction after an error, unless what failed is undone.
    tx.savepoint().await?;
    match db::dispatch!(tx.conn(), set_deleted(id, None, now)) {
        // Somebody was faster than the look above.
        Err(Error::Db(db::Error::Unique { .. })) => {
            tx.undo().await?;
            refuse_any_taken(tx, &places).await?;
            return Err(Error::Db(retry()));
        }
        done => done?,
    }
    tx.release().await?;
    changes::announce_links(tx, &[id]).await?;
    link_by_id(tx.conn(), workspace_id, id).await
}

async fn refuse_any_taken(tx: &mut Tx, places: &[(Domain, Place)]) -> Result<()> {
    for (domain, place) in places {
        refuse_taken(tx, domain, place).await?;
    }
    Ok(())
}

async fn lock_live(tx: &mut Tx, workspace_id: Id, id: Id, expected: Option<i64>) -> Result<Link> {
    let link = lock(tx, workspace_id, id, expected).await?;
    if link.deleted_at.is_some() { Err(Error::NotFound("link")) } else { Ok(link) }
}

/// Reads the link after its row is locked, so that nothing can come between.
async fn lock(tx: &mut Tx, workspace_id: Id, id: Id, expected: Option<i64>) -> Result<Link> {
    let current = db::dispatch!(tx.conn(), lock_link(workspace_id, id))?.ok_or(Error::NotFound("link"))?;
    if let Some(expected) = expected.filter(|expected| *expected != current) {
        return Err(Error::StaleVersion { expected, current });
    }
    link_by_id(tx.conn(), workspace_id, id).await
}
