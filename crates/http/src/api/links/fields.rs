//! What a body says about a link. Absent leaves a field as it is, null empties it.

use std::collections::BTreeMap;

use db::Timestamp;
use links::{Content, Destination, Geo, GeoError, Json, Name, RedirectCode, Slug, Text};
use serde::Deserialize;

use crate::api::body::present;
use crate::problem::FieldError;

/// The fields of a link that a body may set; those of creating and updating alike.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fields {
    pub(crate) destination_url: Option<String>,
    /// The domain's host.
    pub(crate) domain: Option<String>,
    pub(crate) slug: Option<String>,
    #[serde(default, deserialize_with = "present")]
    title: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    notes: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    folder: Option<Option<String>>,
    tags: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    redirect_code: Option<Option<i64>>,
    query_passthrough: Option<bool>,
    enabled: Option<bool>,
    archived: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    expires_at: Option<Option<Timestamp>>,
    #[serde(default, deserialize_with = "present")]
    expired_url: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    ios_url: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    android_url: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    geo: Option<Option<BTreeMap<String, String>>>,
    #[serde(default, deserialize_with = "present")]
    utm: Option<Option<BTreeMap<String, String>>>,
    #[serde(default, deserialize_with = "present")]
    external_id: Option<Option<String>>,
    /// The version that the caller has read.
    pub(crate) version: Option<i64>,
}

/// The fields, checked; nothing in it can be refused any more.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    pub(crate) destination: Option<Destination>,
    pub(crate) slug: Option<Slug>,
    title: Option<Option<Text>>,
    notes: Option<Option<Text>>,
    folder: Option<Option<Name>>,
    tags: Option<Vec<Name>>,
    redirect_code: Option<Option<RedirectCode>>,
    query_passthrough: Option<bool>,
    enabled: Option<bool>,
    archived: Option<bool>,
    expires_at: Option<Option<Timestamp>>,
    expired_url: Option<Option<Destination>>,
    ios_url: Option<Option<Destination>>,
    android_url: Option<Option<Destination>>,
    geo: Option<Option<Geo>>,
    utm: Option<Option<Json>>,
    external_id: Option<Option<Name>>,
}

/// Collects what is wrong, so that a caller learns of all of it at once.
#[derive(Default)]
struct Errors(Vec<FieldError>);

impl Errors {
    fn keep<T>(
        &mut self,
        pointer: &str,
        code: &'static str,
        checked: Result<T, impl std::fmt::Display>,
    ) -> Option<T> {
        checked.map_err(|error| self.0.push(FieldError::new(pointer, code, error.to_string()))).ok()
    }

    /// For a field that may be absent, null or a value.
    fn field<A, T, E: std::fmt::Display>(
        &mut self,
        pointer: &str,
        code: &'static str,
        given: Option<Option<A>>,
        check: impl FnOnce(A) -> Result<T, E>,
    ) -> Option<Option<T>> {
        match given {
            None => None,
            Some(None) => Some(None),
            Some(Some(value)) => self.keep(pointer, code, check(value)).map(Some),
        }
    }
}

impl Fields {
    /// Checks every field; destinations may have up to `longest` characters.
    ///
    /// # Errors
    /// All that is wrong.
    pub(crate) fn check(self, longest: usize) -> Result<Edit, Vec<FieldError>> {
        let mut errors = Errors::default();
        let destination = |url: String| Destination::with_limit(url, longest);
        let name = |text: String| Name::new(&text);
        let text = |text: String| Ok::<_, std::convert::Infallible>(Text::new(text));
        let json = |map: BTreeMap<String, String>| Json::new(serde_json::to_string(&map).unwrap_or_default());
        let mut tags = None;
        if let Some(given) = self.tags {
            let checked = given.iter().enumerate().filter_map(|(place, tag)| {
                errors.keep(&format!("/tags/{place}"), "invalid_name", Name::new(tag))
            });
            tags = Some(checked.collect());
        }
        let edit = Edit {
            destination: self
                .destination_url
                .and_then(|url| errors.keep("/destination_url", "invalid_destination", destination(url))),
            slug: self.slug.and_then(|slug| errors.keep("/slug", "invalid_slug", usable(&slug))),
            title: errors.field("/title", "invalid_text", self.title, text),
            notes: errors.field("/notes", "invalid_text", self.notes, text),
            folder: errors.field("/folder", "invalid_name", self.folder, name),
            tags,
            redirect_code: errors.field(
                "/redirect_code",
                "invalid_redirect_code",
                self.redirect_code,
                RedirectCode::try_from,
            ),
            query_passthrough: self.query_passthrough,
            enabled: self.enabled,
            archived: self.archived,
            expires_at: self.expires_at,
            expired_url: errors.field("/expired_url", "invalid_destination", self.expired_url, destination),
            ios_url: errors.field("/ios_url", "invalid_destination", self.ios_url, destination),
            android_url: errors.field("/android_url", "invalid_destination", self.android_url, destination),
            geo: self.geo.map(|given| given.map(|targets| countries(&mut errors, &targets, longest))),
            utm: errors.field("/utm", "invalid_json", self.utm, json),
            external_id: errors.field("/external_id", "invalid_name", self.external_id, name),
        };
        if errors.0.is_empty() { Ok(edit) } else { Err(errors.0) }
    }
}

/// Every country is checked, so that a caller learns of all that are wrong.
fn countries(errors: &mut Errors, targets: &BTreeMap<String, String>, longest: usize) -> Geo {
    let mut geo = Geo::default();
    for (country, url) in targets {
        if let Err(error) = geo.insert_with_limit(country, url, longest) {
            let code = match error {
                GeoError::Destination { .. } => "invalid_destination",
                GeoError::Country(_) | GeoError::Twice(_) => "invalid_country",
            };
            errors.0.push(FieldError::new(format!("/geo/{}", token(country)), code, error.to_string()));
        }
    }
    geo
}

/// A member's name as a part of a JSON pointer (RFC 6901, section 3).
fn token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn usable(text: &str) -> Result<Slug, String> {
    let slug = Slug::new(text).map_err(|error| error.to_string())?;
    match slug.reserved() {
        Some(name) => {
            Err(format!("slug '{slug}' is reserved: browsers and crawlers ask every host for {name}"))
        }
        None => Ok(slug),
    }
}

impl Edit {
    /// Applies what was given; the slug is not part of the content.
    pub(crate) fn apply(self, content: &mut Content) {
        set(&mut content.destination, self.destination);
        set(&mut content.title, self.title);
        set(&mut content.notes, self.notes);
        set(&mut content.folder, self.folder);
        set(&mut content.tags, self.tags);
        set(&mut content.redirect_code, self.redirect_code);
        set(&mut content.query_passthrough, self.query_passthrough);
        set(&mut content.enabled, self.enabled);
        set(&mut content.archived, self.archived);
        set(&mut content.expires_at, self.expires_at);
        set(&mut content.expired_url, self.expired_url);
        set(&mut content.ios_url, self.ios_url);
        set(&mut content.android_url, self.android_url);
        set(&mut content.geo, self.geo.map(|given| given.map(Into::into)));
        set(&mut content.utm, self.utm);
        set(&mut content.external_id, self.external_id);
    }
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *place = value;
    }
}
