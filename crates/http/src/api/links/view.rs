//! A link as answers show it.

use std::collections::HashMap;

use db::{Id, Reader, Timestamp};
use links::Link;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;

use crate::api::Api;
use crate::problem::Problem;

/// What may stand in a path unencoded (RFC 3986, section 3.3).
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// A link. `domain`, `slug` and `short_url` are the first of its `slugs`.
#[derive(Debug, Serialize)]
pub(crate) struct LinkView {
    id: Id,
    domain: String,
    slug: String,
    short_url: String,
    slugs: Vec<SlugView>,
    destination_url: String,
    title: Option<String>,
    notes: Option<String>,
    folder: Option<String>,
    tags: Vec<String>,
    redirect_code: Option<u16>,
    query_passthrough: bool,
    enabled: bool,
    archived: bool,
    expires_at: Option<Timestamp>,
    expired_url: Option<String>,
    password_protected: bool,
    ios_url: Option<String>,
    android_url: Option<String>,
    geo: Option<Value>,
    utm: Option<Value>,
    external_id: Option<String>,
    clicks: ClicksView,
    source: Option<SourceView>,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
    version: i64,
}

#[derive(Debug, Serialize)]
struct SlugView {
    domain: String,
    slug: String,
    short_url: String,
}

/// Clicks counted here, apart from those another service had counted before the import.
#[derive(Debug, Serialize)]
struct ClicksView {
    humans: i64,
    bots: i64,
    imported: Option<i64>,
}

#[derive(Debug, Serialize)]
struct SourceView {
    vendor: String,
    id: String,
    import: Id,
}

/// The links with their clicks.
pub(crate) async fn views(
    api: &Api,
    reader: &mut Reader,
    links: Vec<Link>,
) -> Result<Vec<LinkView>, Problem> {
    let ids: Vec<Id> = links.iter().map(|link| link.id).collect();
    let counts: HashMap<Id, links::Count> =
        links::click_totals(reader.conn(), &ids).await?.into_iter().collect();
    Ok(links.into_iter().map(|link| LinkView::new(&api.scheme, &counts, link)).collect())
}

/// The link with its clicks.
pub(crate) async fn view(api: &Api, reader: &mut Reader, link: Link) -> Result<LinkView, Problem> {
    views(api, reader, vec![link]).await?.pop().ok_or_else(|| Problem::internal("a link has no view"))
}

impl LinkView {
    fn new(scheme: &str, counts: &HashMap<Id, links::Count>, link: Link) -> Self {
        let count = counts.get(&link.id).copied().unwrap_or_default();
        let slugs: Vec<SlugView> = link
            .slugs
            .iter()
            .map(|place| SlugView {
                domain: place.host.to_string(),
                slug: place.slug.to_string(),
                short_url: format!(
                    "{scheme}://{}/{}",
                    place.host,
                    utf8_percent_encode(place.slug.as_str(), PATH)
                ),
            })
            .collect();
        let first = slugs.first();
        let content = link.content;
        Self {
            id: link.id,
            domain: first.map(|slug| slug.domain.clone()).unwrap_or_default(),
            slug: first.map(|slug| slug.slug.clone()).unwrap_or_default(),
            short_url: first.map(|slug| slug.short_url.clone()).unwrap_or_default(),
            slugs,
            destination_url: content.destination.to_string(),
            title: content.title.map(|text| text.to_string()),
            notes: content.notes.map(|text| text.to_string()),
            folder: content.folder.map(|name| name.to_string()),
            tags: content.tags.iter().map(ToString::to_string).collect(),
            redirect_code: content.redirect_code.map(links::RedirectCode::number),
            query_passthrough: content.query_passthrough,
            enabled: content.enabled,
            archived: content.archived,
            expires_at: content.expires_at,
            expired_url: content.expired_url.map(|url| url.to_string()),
            password_protected: content.password_protected,
            ios_url: content.ios_url.map(|url| url.to_string()),
            android_url: content.android_url.map(|url| url.to_string()),
            geo: content.geo.and_then(|json| serde_json::from_str(json.as_str()).ok()),
            utm: content.utm.and_then(|json| serde_json::from_str(json.as_str()).ok()),
            external_id: content.external_id.map(|name| name.to_string()),
            clicks: ClicksView { humans: count.humans, bots: count.bots, imported: content.imported_clicks },
            source: link.provenance.map(|from| SourceView {
                vendor: from.vendor,
                id: from.source_id,
                import: from.import_job,
            }),
            created_at: content.created_at,
            updated_at: link.updated_at,
            deleted_at: link.deleted_at,
            version: link.version,
        }
    }

    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    pub(crate) fn id(&self) -> Id {
        self.id
    }
}
