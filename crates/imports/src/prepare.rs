//! From a vendor's record to what could be written, before the target is asked: everything that needs no database.

use std::sync::Arc;

use db::Timestamp;
use engine::{Outcome, Reason, StagedRecord, Written};
use links::{Content, Destination, DestinationError, Json, Name, Place, RedirectCode, Slug, SourceKey, Text};

use crate::routes::{Route, Routes};
use crate::{Incoming, IncomingLink, Mapper};

/// A record that is ready for the question whether its slugs are free.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) source: SourceKey,
    /// What people know it by: its first address.
    pub(crate) label: String,
    pub(crate) content: Content,
    /// Where it wants to be, in the vendor's order.
    pub(crate) places: Vec<Place>,
    /// Addresses that go nowhere, with their outcome and reason.
    pub(crate) lost: Vec<(Outcome, Reason)>,
    /// Digest of what the source wants it to be; equal digests mean that nothing changed there.
    pub(crate) source_digest: links::Digest,
    pub(crate) provenance: Text,
}

/// A record after everything that needs no database.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// Its outcome is known.
    Settled(Written),
    /// The target decides.
    Candidate(Box<Candidate>),
}

/// Reads records and applies what needs no database.
#[derive(Clone)]
pub(crate) struct Preparer {
    pub(crate) mapper: Arc<dyn Mapper>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) vendor_tag: Name,
}

impl Preparer {
    pub(crate) fn new(mapper: Arc<dyn Mapper>, routes: Arc<Routes>) -> Self {
        let vendor_tag =
            Name::new(&format!("imported:{}", mapper.vendor())).expect("a vendor's word is short and plain");
        Self { mapper, routes, vendor_tag }
    }

    pub(crate) fn prepare(&self, record: &StagedRecord, now: Timestamp) -> Prepared {
        match self.mapper.map(&record.raw) {
            Err(unreadable) => {
                Prepared::Settled(Written::failed(unreadable.source_id, unreadable.label, unreadable.reason))
            }
            Ok(Incoming::Filtered { source_id, label, reason }) => {
                Prepared::Settled(settled(Outcome::Filtered, Some(source_id), label, reason))
            }
            Ok(Incoming::Link(link)) => self.candidate(*link, now),
        }
    }

    fn candidate(&self, link: IncomingLink, now: Timestamp) -> Prepared {
        let label = link
            .addresses
            .first()
            .map_or_else(|| link.source_id.clone(), |address| format!("{}/{}", address.host, address.slug));
        let fail = |code: &'static str, detail: String| {
            Prepared::Settled(Written::failed(
                Some(link.source_id.clone()),
                Some(label.clone()),
                Reason::new(code, detail),
            ))
        };
        let source = match SourceKey::new(self.mapper.vendor(), &link.source_id) {
            Ok(source) => source,
            Err(error) => return fail("invalid_source_id", error.to_string()),
        };
        let destination = match Destination::new(link.destination.clone()) {
            Ok(destination) => destination,
            Err(error) => return fail(destination_code(&error), format!("{label}: {error}")),
        };
        let (places, lost) = self.places(&link);
        for place in &places {
            let domain = self.routes.domains().find(|domain| domain.id == place.domain_id);
            if let Some(domain) = domain
                && destination.is_self_reference(&domain.host, &place.slug, domain.settings.case_mode)
            {
                let detail = format!("{label}: the destination {destination} is the new short URL itself");
                return fail("self_reference", detail);
            }
        }
        if places.is_empty() {
            let (outcome, reason) = worst(&lost).unwrap_or_else(|| {
                (
                    Outcome::Failed,
                    Reason::new("no_address", format!("{label}: the record names no short URL")),
                )
            });
            return Prepared::Settled(settled(outcome, Some(link.source_id), Some(label), reason));
        }
        let known_time = link.created_at;
        let provenance = Text::new(link.provenance.as_str());
        let content = self.content(link, destination, known_time.unwrap_or(now));
        // A record without a date gets the time of its import, which must not look like a change at the source.
        let timeless = Content { created_at: known_time.unwrap_or_default(), ..content.clone() };
        let source_digest = links::digest_of(&timeless, &places);
        Prepared::Candidate(Box::new(Candidate {
            source,
            label,
            content,
            places,
            lost,
            source_digest,
            provenance,
        }))
    }

    /// The places a link wants, each once, and the addresses that go nowhere.
    fn places(&self, link: &IncomingLink) -> (Vec<Place>, Vec<(Outcome, Reason)>) {
        let mut places: Vec<Place> = Vec::with_capacity(link.addresses.len());
        let unreadable = link.bad_addresses.iter().map(|reason| (Outcome::Failed, reason.clone()));
        let mut lost: Vec<(Outcome, Reason)> = unreadable.collect();
        for address in &link.addresses {
            let domain = match self.routes.route(address) {
                Route::To(domain) => domain,
                Route::Filtered(reason) => {
                    lost.push((Outcome::Filtered, reason));
                    continue;
                }
                Route::VendorOwned(reason) => {
                    lost.push((Outcome::Failed, reason));
                    continue;
                }
            };
            match slug(&address.slug) {
                Ok(slug) => {
                    let same = |place: &Place| {
                        place.domain_id == domain.id
                            && domain.settings.case_mode.key(&place.slug)
                                == domain.settings.case_mode.key(&slug)
                    };
                    if !places.iter().any(same) {
                        places.push(Place { domain_id: domain.id, slug });
                    }
                }
                Err((code, detail)) => {
                    let detail = format!("{}/{}: {detail}", address.host, address.slug);
                    lost.push((Outcome::Failed, Reason::new(code, detail)));
                }
            }
        }
        (places, lost)
    }

    fn content(&self, link: IncomingLink, destination: Destination, created_at: Timestamp) -> Content {
        let mut tags: Vec<Name> = link.tags.iter().filter_map(|tag| Name::new(tag).ok()).collect();
        tags.push(self.vendor_tag.clone());
        let json = |map: &std::collections::BTreeMap<String, String>| {
            (!map.is_empty()).then(|| {
                let text = serde_json::to_string(map).expect("a map of texts is JSON");
                Json::new(text).expect("it was just written as JSON")
            })
        };
        Content {
            title: link.title.map(Text::new),
            notes: link.notes.map(Text::new),
            folder: link.folder.as_deref().and_then(|name| Name::new(name).ok()),
            tags,
            redirect_code: link.redirect_code.and_then(|code| RedirectCode::try_from(i64::from(code)).ok()),
            query_passthrough: link.query_passthrough.unwrap_or(true),
            enabled: !link.disabled,
            archived: link.archived,
            expires_at: link.expires_at,
            expired_url: link.expired_url.and_then(|url| Destination::new(url).ok()),
            password_protected: link.password_protected,
            ios_url: link.ios_url.and_then(|url| Destination::new(url).ok()),
            android_url: link.android_url.and_then(|url| Destination::new(url).ok()),
            geo: json(&link.geo),
            utm: json(&link.utm),
            imported_clicks: link.clicks,
            ..Content::to(destination, created_at)
        }
    }
}

fn slug(text: &str) -> Result<Slug, (&'static str, String)> {
    let slug = Slug::new(text).map_err(|error| ("invalid_slug", error.to_string()))?;
    match slug.reserved() {
        Some(reserved) => {
            Err(("reserved_slug", format!("'{reserved}' is what browsers and robots ask every host for")))
        }
        None => Ok(slug),
    }
}

fn destination_code(error: &DestinationError) -> &'static str {
    match error {
        DestinationError::Empty => "missing_destination",
        DestinationError::TooLong { .. } => "destination_too_long",
        DestinationError::Scheme(_) => "destination_scheme",
        _ => "invalid_destination",
    }
}

/// An outcome with its reason and nothing written.
pub(crate) fn settled(
    outcome: Outcome,
    source_id: Option<String>,
    label: Option<String>,
    reason: Reason,
) -> Written {
    Written { outcome, ..Written::failed(source_id, label, reason) }
}

/// The worst of some outcomes: a record with several slugs has its worst slug's outcome.
pub(crate) fn worst(lost: &[(Outcome, Reason)]) -> Option<(Outcome, Reason)> {
    lost.iter().max_by_key(|(outcome, _)| badness(*outcome)).cloned()
}

pub(crate) fn badness(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Failed => 6,
        Outcome::Skipped => 5,
        Outcome::Filtered => 4,
        Outcome::Imported => 3,
        Outcome::Updated => 2,
        Outcome::DuplicateInSource => 1,
        Outcome::Unchanged => 0,
    }
}
