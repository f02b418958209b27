//! Domains: the hosts under which links answer.

use std::collections::HashMap;

use db::{Conn, Id, Timestamp, Tx};

use crate::store::{postgres, sqlite};
use crate::{CaseMode, Destination, Error, Fallback, Host, RedirectCode, Result, Slug, changes};

/// How many colliding pairs [`Error::CaseCollision`] names.
pub const COLLISIONS_NAMED: usize = 20;

/// Slugs looked at in one statement when a domain changes its case mode.
const REKEY_CHUNK: i64 = 2_000;

/// A host and how it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Its id.
    pub id: Id,
    /// The workspace it belongs to.
    pub workspace_id: Id,
    /// The host.
    pub host: Host,
    /// What people can set.
    pub settings: DomainSettings,
    /// When it was made.
    pub created_at: Timestamp,
    /// 1 at first; every change adds 1.
    pub version: i64,
}

/// What people can set on a domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DomainSettings {
    /// How slugs are compared.
    pub case_mode: CaseMode,
    /// Where the bare host leads.
    pub root_redirect: Option<Destination>,
    /// Where unknown slugs lead.
    pub fallback_url: Option<Fallback>,
    /// Where expired links lead that name no place of their own.
    pub expired_url: Option<Destination>,
    /// The status of redirects whose link names none.
    pub default_redirect_code: RedirectCode,
}

/// Adds a domain.
///
/// # Errors
/// [`Error::HostTaken`] if any workspace has that host.
pub async fn add_domain(
    tx: &mut Tx,
    workspace_id: Id,
    host: &Host,
    settings: &DomainSettings,
    now: Timestamp,
) -> Result<Domain> {
    match ensure_domain(tx, workspace_id, host, settings, now).await? {
        (domain, true) => Ok(domain),
        (domain, false) => Err(Error::HostTaken(domain.host.to_string())),
    }
}

/// The workspace's domain with that host, made with these settings if it is missing; `true` if it was.
///
/// # Errors
/// [`Error::HostTaken`] if another workspace has that host.
pub async fn ensure_domain(
    tx: &mut Tx,
    workspace_id: Id,
    host: &Host,
    settings: &DomainSettings,
    now: Timestamp,
) -> Result<(Domain, bool)> {
    let id = Id::new();
    let made = db::dispatch!(tx.conn(), insert_domain(id, workspace_id, host, settings, now))?;
    let row = db::dispatch!(tx.conn(), domain_by_host(host))?;
    let domain = row.ok_or(Error::NotFound("domain"))?.domain()?;
    if domain.workspace_id != workspace_id {
        return Err(Error::HostTaken(host.to_string()));
    }
    if made {
        changes::announce_domain(tx, id).await?;
    }
    Ok((domain, made))
}

/// A workspace's domain by id.
///
/// # Errors
/// [`Error::NotFound`], also for another workspace's domain.
pub async fn domain(conn: Conn<'_>, workspace_id: Id, id: Id) -> Result<Domain> {
    db::dispatch!(conn, domain_by_id(workspace_id, id))?.ok_or(Error::NotFound("domain"))?.domain()
}

/// The domain that answers for a host, whichever workspace it belongs to.
///
/// # Errors
/// The database's.
pub async fn domain_by_host(conn: Conn<'_>, host: &Host) -> Result<Option<Domain>> {
    db::dispatch!(conn, domain_by_host(host))?.map(|row| row.domain()).transpose()
}

/// A workspace's domains, by host.
///
/// # Errors
/// The database's.
pub async fn domains(conn: Conn<'_>, workspace_id: Id) -> Result<Vec<Domain>> {
    db::dispatch!(conn, domains_of_workspace(workspace_id))?.into_iter().map(|row| row.domain()).collect()
}

/// Every domain, for a server that answers for all of them.
///
/// # Errors
/// The database's.
pub async fn all_domains(conn: Conn<'_>) -> Result<Vec<Domain>> {
    db::dispatch!(conn, all_domains())?.into_iter().map(|row| row.domain()).collect()
}

/// Changes a domain's settings. A change of the case mode compares and re-keys all its slugs in this transaction.
///
/// # Errors
/// [`Error::StaleVersion`] if `expected` is not the current version; [`Error::CaseCollision`] names slugs that
/// would become one.
pub async fn update_domain(
    tx: &mut Tx,
    workspace_id: Id,
    id: Id,
    expected: Option<i64>,
    edit: impl FnOnce(&mut DomainSettings),
) -> Result<Domain> {
    let row = db::dispatch!(tx.conn(), lock_domain(workspace_id, id))?;
    let mut domain = row.ok_or(Error::NotFound("domain"))?.domain()?;
    if let Some(expected) = expected.filter(|expected| *expected != domain.version) {
        return Err(Error::StaleVersion { expected, current: domain.version });
    }
    let before = domain.settings.case_mode;
    edit(&mut domain.settings);
    match domain.settings.case_mode {
        after if after == before => {}
        CaseMode::Sensitive => db::dispatch!(tx.conn(), unfold_domain(id))?,
        CaseMode::Insensitive => fold_domain(tx, &domain).await?,
    }
    db::dispatch!(tx.conn(), write_domain(id, &domain.settings))?;
    changes::announce_domain(tx, id).await?;
    domain.version += 1;
    Ok(domain)
}

/// Gives every slug of the domain its folded key, a chunk at a time, so that memory stays flat.
///
/// A folded key never changes by being folded again. So a slug whose row is still to come collides with a key of
/// this chunk only if it is that key itself, or when its own chunk comes.
async fn fold_domain(tx: &mut Tx, domain: &Domain) -> Result<()> {
    let mut collisions = Vec::new();
    let mut after: Option<(Id, String)> = None;
    loop {
        let chunk = db::dispatch!(tx.conn(), slugs_of_domain(domain.id, after.as_ref(), REKEY_CHUNK))?;
        let Some((last_link, last_slug, _)) = chunk.last() else { break };
        after = Some((*last_link, last_slug.clone()));
        collisions.extend(fold_chunk(tx, domain.id, &chunk).await?);
        if collisions.len() >= COLLISIONS_NAMED {
            break;
        }
    }
    if collisions.is_empty() {
        return Ok(());
    }
    collisions.truncate(COLLISIONS_NAMED);
    Err(Error::CaseCollision { host: domain.host.to_string(), slugs: collisions })
}

/// Writes the keys of one chunk, or names what collides. The flag of a slug says whether it is deleted: such a slug
/// gets its key too, for the day it is restored, and collides with nothing.
async fn fold_chunk(
    tx: &mut Tx,
    domain_id: Id,
    chunk: &[(Id, String, bool)],
) -> Result<Vec<(String, String)>> {
    let mut changed: Vec<(Id, &str, String)> = Vec::new();
    let mut live: HashMap<String, &str> = HashMap::new();
    let mut collisions = Vec::new();
    for (link_id, slug, deleted) in chunk {
        let folded = Slug::stored(slug.clone()).folded();
        if folded == *slug {
            continue;
        }
        if !deleted && let Some(other) = live.insert(folded.clone(), slug) {
            collisions.push((other.to_owned(), slug.clone()));
        }
        changed.push((*link_id, slug, folded));
    }
    let keys: Vec<(Id, &str)> = live.keys().map(|key| (domain_id, key.as_str())).collect();
    for row in db::dispatch!(tx.conn(), taken(&keys))? {
        let mine = live.get(&row.folded).map_or_else(String::new, |slug| (*slug).to_owned());
        collisions.push((row.slug, mine));
    }
    if collisions.is_empty() {
        db::dispatch!(tx.conn(), rekey(domain_id, &changed))?;
    }
    Ok(collisions)
}
