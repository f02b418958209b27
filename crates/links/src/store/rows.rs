//! Rows as both databases give them, and what they become.

use std::collections::HashMap;

use db::{Id, Timestamp};
use sqlx::FromRow;

use crate::values::{Json, Name, Text};
use crate::{
    CaseMode, Content, Destination, Domain, Fallback, GeoJson, Host, Link, LinkSlug, Plan, Provenance,
    RedirectCode, Result, Slug, Workspace,
};

/// The columns of [`LinkRow`], of `links l LEFT JOIN folders f`.
macro_rules! link_columns {
    () => {
        "l.id, l.workspace_id, l.destination, l.title, l.notes, f.name AS folder, l.redirect_code, \
         l.query_passthrough, l.enabled, l.archived, l.expires_at, l.expired_url, l.password_protected, \
         l.ios_url, l.android_url, l.geo, l.utm, l.imported_clicks, l.external_id, l.created_at, \
         l.updated_at, l.deleted_at, l.version, l.vendor, l.source_id, l.import_job"
    };
}
pub(crate) use link_columns;

#[derive(FromRow)]
pub(crate) struct LinkRow {
    pub(crate) id: Id,
    workspace_id: Id,
    destination: String,
    title: Option<String>,
    notes: Option<String>,
    folder: Option<String>,
    redirect_code: Option<i16>,
    query_passthrough: bool,
    enabled: bool,
    archived: bool,
    expires_at: Option<Timestamp>,
    expired_url: Option<String>,
    password_protected: bool,
    ios_url: Option<String>,
    android_url: Option<String>,
    geo: Option<String>,
    utm: Option<String>,
    imported_clicks: Option<i64>,
    external_id: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
    version: i64,
    vendor: Option<String>,
    source_id: Option<String>,
    import_job: Option<Id>,
}

#[derive(FromRow)]
pub(crate) struct SlugRow {
    pub(crate) link_id: Id,
    domain_id: Id,
    slug: String,
    host: String,
}

#[derive(FromRow)]
pub(crate) struct TagRow {
    link_id: Id,
    name: String,
}

/// Links with what belongs to them, as three statements read them.
pub(crate) struct LinkParts {
    pub(crate) links: Vec<LinkRow>,
    pub(crate) slugs: Vec<SlugRow>,
    pub(crate) tags: Vec<TagRow>,
}

impl LinkParts {
    /// The links, in the order of their ids.
    pub(crate) fn assemble(self) -> Result<Vec<Link>> {
        let mut slugs: HashMap<Id, Vec<LinkSlug>> = HashMap::new();
        for row in self.slugs {
            slugs.entry(row.link_id).or_default().push(LinkSlug {
                host: Host::stored(row.host),
                slug: Slug::stored(row.slug),
                domain_id: row.domain_id,
            });
        }
        let mut tags: HashMap<Id, Vec<Name>> = HashMap::new();
        for row in self.tags {
            tags.entry(row.link_id).or_default().push(Name::stored(row.name));
        }
        let mut links = self
            .links
            .into_iter()
            .map(|row| {
                let (mut slugs, mut tags) =
                    (slugs.remove(&row.id).unwrap_or_default(), tags.remove(&row.id).unwrap_or_default());
                slugs.sort_unstable();
                tags.sort_unstable();
                link(row, slugs, tags)
            })
            .collect::<Result<Vec<_>>>()?;
        links.sort_unstable_by_key(|link| link.id);
        Ok(links)
    }
}

fn link(row: LinkRow, slugs: Vec<LinkSlug>, tags: Vec<Name>) -> Result<Link> {
    let provenance = match (row.vendor, row.source_id, row.import_job) {
        (Some(vendor), Some(source_id), Some(import_job)) => {
            Some(Provenance { vendor, source_id, import_job })
        }
        _ => None,
    };
    Ok(Link {
        id: row.id,
        workspace_id: row.workspace_id,
        content: Content {
            destination: Destination::stored(row.destination),
            title: row.title.map(Text::stored),
            notes: row.notes.map(Text::stored),
            folder: row.folder.map(Name::stored),
            tags,
            redirect_code: code(row.redirect_code)?,
            query_passthrough: row.query_passthrough,
            enabled: row.enabled,
            archived: row.archived,
            expires_at: row.expires_at,
            expired_url: row.expired_url.map(Destination::stored),
            password_protected: row.password_protected,
            ios_url: row.ios_url.map(Destination::stored),
            android_url: row.android_url.map(Destination::stored),
            geo: row.geo.map(GeoJson::stored),
            utm: row.utm.map(Json::stored),
            imported_clicks: row.imported_clicks,
            external_id: row.external_id.map(Name::stored),
            created_at: row.created_at,
        },
        slugs,
        updated_at: row.updated_at,
        deleted_at: row.deleted_at,
        version: row.version,
        provenance,
    })
}

pub(crate) fn code(number: Option<i16>) -> Result<Option<RedirectCode>> {
    Ok(number.map(|number| RedirectCode::try_from(i64::from(number))).transpose()?)
}

/// A redirect code as its column keeps it.
pub(crate) fn code_number(code: RedirectCode) -> i16 {
    i16::try_from(code.number()).expect("three digits fit")
}

#[derive(FromRow)]
pub(crate) struct WorkspaceRow {
    id: Id,
    name: String,
    plan: String,
    default_domain_id: Option<Id>,
    created_at: Timestamp,
}

impl WorkspaceRow {
    pub(crate) fn workspace(self) -> Result<Workspace> {
        Ok(Workspace {
            id: self.id,
            name: Name::stored(self.name),
            plan: self.plan.parse::<Plan>()?,
            default_domain_id: self.default_domain_id,
            created_at: self.created_at,
        })
    }
}

/// The columns of [`DomainRow`].
macro_rules! domain_columns {
    () => {
        "id, workspace_id, host, case_mode, root_redirect, fallback_url, expired_url, default_redirect_code, \
         created_at, version"
    };
}
pub(crate) use domain_columns;

#[derive(FromRow)]
pub(crate) struct DomainRow {
    id: Id,
    workspace_id: Id,
    host: String,
    case_mode: String,
    root_redirect: Option<String>,
    fallback_url: Option<String>,
    expired_url: Option<String>,
    default_redirect_code: i16,
    created_at: Timestamp,
    version: i64,
}

impl DomainRow {
    pub(crate) fn domain(self) -> Result<Domain> {
        Ok(Domain {
            id: self.id,
            workspace_id: self.workspace_id,
            host: Host::stored(self.host),
            settings: crate::DomainSettings {
                case_mode: self.case_mode.parse::<CaseMode>()?,
                root_redirect: self.root_redirect.map(Destination::stored),
                fallback_url: self.fallback_url.map(Fallback::stored),
                expired_url: self.expired_url.map(Destination::stored),
                default_redirect_code: RedirectCode::try_from(i64::from(self.default_redirect_code))?,
            },
            created_at: self.created_at,
            version: self.version,
        })
    }
}

#[derive(FromRow)]
pub(crate) struct TokenRow {
    pub(crate) id: Id,
    pub(crate) workspace_id: Id,
    pub(crate) name: String,
    pub(crate) hash: Vec<u8>,
    pub(crate) prefix: String,
    pub(crate) scopes: String,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) revoked_at: Option<Timestamp>,
    pub(crate) last_used_at: Option<Timestamp>,
    pub(crate) plan: String,
}

/// The columns of [`ResolvedRow`], of `slugs s JOIN links l`, besides whether it was found by the other key.
macro_rules! resolved_columns {
    () => {
        "l.id AS link_id, l.destination, l.redirect_code, l.query_passthrough, l.enabled, l.archived, \
         l.expires_at, l.expired_url, l.password_protected, l.version, l.vendor, l.source_id"
    };
}
pub(crate) use resolved_columns;

#[derive(FromRow)]
pub(crate) struct ResolvedRow {
    pub(crate) link_id: Id,
    pub(crate) destination: String,
    pub(crate) redirect_code: Option<i16>,
    pub(crate) query_passthrough: bool,
    pub(crate) enabled: bool,
    pub(crate) archived: bool,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) expired_url: Option<String>,
    pub(crate) password_protected: bool,
    pub(crate) version: i64,
    pub(crate) vendor: Option<String>,
    pub(crate) source_id: Option<String>,
    pub(crate) by_other: bool,
}

#[derive(FromRow)]
pub(crate) struct OriginRow {
    pub(crate) source_id: String,
    pub(crate) link_id: Id,
    pub(crate) imported_digest: Vec<u8>,
    pub(crate) imported_version: i64,
    pub(crate) source_digest: Vec<u8>,
    pub(crate) job_id: Id,
    /// `None`: the link is gone altogether.
    pub(crate) version: Option<i64>,
    pub(crate) deleted_at: Option<Timestamp>,
}

#[derive(FromRow)]
pub(crate) struct TakenRow {
    pub(crate) domain_id: Id,
    pub(crate) folded: String,
    pub(crate) slug: String,
    pub(crate) link_id: Id,
}

/// A link that a job has made, as the undo looks at it.
#[derive(FromRow)]
pub(crate) struct MadeRow {
    pub(crate) id: Id,
    pub(crate) version: i64,
    pub(crate) deleted_at: Option<Timestamp>,
    pub(crate) imported_version: Option<i64>,
    pub(crate) job_id: Option<Id>,
}

#[derive(FromRow)]
pub(crate) struct ChangeRow {
    pub(crate) id: Option<i64>,
    pub(crate) domain_id: Option<Id>,
    pub(crate) folded: Option<String>,
    pub(crate) link_id: Option<Id>,
    pub(crate) mark: i64,
}
