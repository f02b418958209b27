//! From a vendor's record to what could be written, before the target is asked: everything that needs no database.

use std::sync::Arc;

use db::Timestamp;
use engine::{Outcome, Reason, StagedRecord, Written};
use links::{
    Content, Destination, DestinationError, Geo, Json, Name, Place, RedirectCode, Slug, SourceKey, Text,
};

use crate::routes::{Route, Routes};
use crate::{Incoming, IncomingAddress, IncomingLink, Mapper, Unreadable};

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
    /// The source does not say when the link was made; its content has the time of the import instead.
    pub(crate) undated: bool,
    /// What of the record has no place here or was refused, for people.
    pub(crate) left_behind: Vec<String>,
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
    /// The longest destination that is taken, in characters.
    pub(crate) destination_length_max: usize,
}

impl Preparer {
    pub(crate) fn new(mapper: Arc<dyn Mapper>, routes: Arc<Routes>, destination_length_max: usize) -> Self {
        let vendor_tag =
            Name::new(&format!("imported:{}", mapper.vendor())).expect("a vendor's word is short and plain");
        Self { mapper, routes, vendor_tag, destination_length_max }
    }

    pub(crate) fn prepare(&self, record: &StagedRecord, now: Timestamp) -> Prepared {
        self.prepare_noting(record, now, |_| {})
    }

    /// As [`Preparer::prepare`]; calls `met` for each address of the record.
    pub(crate) fn prepare_noting(
        &self,
        record: &StagedRecord,
        now: Timestamp,
        met: impl FnMut(&IncomingAddress),
    ) -> Prepared {
        match self.mapper.map(&record.raw) {
            Err(unreadable) => {
                Prepared::Settled(Written::failed(unreadable.source_id, unreadable.label, unreadable.reason))
            }
            Ok(Incoming::Filtered { source_id, label, reason }) => {
                Prepared::Settled(settled(Outcome::Filtered, Some(source_id), label, reason))
            }
            Ok(Incoming::Link(link)) => {
                link.addresses.iter().for_each(met);
                self.candidate(*link, now)
            }
        }
    }

    /// Whether the vendor's id can be made out.
    pub(crate) fn has_identity(&self, raw: &[u8]) -> bool {
        !matches!(self.mapper.map(raw), Err(Unreadable { source_id: None, .. }))
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
        let destination = match self.destination(&link.destination) {
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
        let (content, left_behind) = self.content(link, destination, known_time.unwrap_or(now));
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
            undated: known_time.is_none(),
            left_behind,
        }))
    }

    fn destination(&self, url: &str) -> Result<Destination, DestinationError> {
        Destination::with_limit(url, self.destination_length_max)
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

    /// The content, and what of the link could not become part of it.
    fn content(
        &self,
        link: IncomingLink,
        destination: Destination,
        created_at: Timestamp,
    ) -> (Content, Vec<String>) {
        let mut left: Vec<String> = link.left_behind.iter().map(|&word| word.to_owned()).collect();
        let mut tags = Vec::with_capacity(link.tags.len() + 1);
        for tag in &link.tags {
            match Name::new(tag) {
                Ok(tag) => tags.push(tag),
                Err(error) => left.push(format!("tag '{}' ({error})", excerpt(tag))),
            }
        }
        tags.push(self.vendor_tag.clone());
        let folder = link.folder.as_deref().and_then(|name| match Name::new(name) {
            Ok(name) => Some(name),
            Err(error) => {
                left.push(format!("folder '{}' ({error})", excerpt(name)));
                None
            }
        });
        let mut url = |field: &str, url: Option<String>| {
            let url = url?;
            match self.destination(&url) {
                Ok(url) => Some(url),
                Err(error) => {
                    left.push(format!("{field} '{}' ({error})", excerpt(&url)));
                    None
                }
            }
        };
        let expired_url = url("expired_url", link.expired_url);
        let ios_url = url("ios_url", link.ios_url);
        let android_url = url("android_url", link.android_url);
        let mut geo = Geo::default();
        for (country, url) in &link.geo {
            if let Err(error) = geo.insert_with_limit(country, url, self.destination_length_max) {
                left.push(error.to_string());
            }
        }
        let redirect_code = link.redirect_code.and_then(|code| {
            let known = RedirectCode::try_from(i64::from(code)).ok();
            if known.is_none() {
                left.push(format!("redirect code {code}"));
            }
            known
        });
        let utm = (!link.utm.is_empty()).then(|| {
            let text = serde_json::to_string(&link.utm).expect("a map of texts is JSON");
            Json::new(text).expect("it was just written as JSON")
        });
        let content = Content {
            title: link.title.map(Text::new),
            notes: link.notes.map(Text::new),
            folder,
            tags,
            redirect_code,
            query_passthrough: link.query_passthrough.unwrap_or(true),
            enabled: !link.disabled,
            archived: link.archived,
            expires_at: link.expires_at,
            expired_url,
            password_protected: link.password_protected,
            ios_url,
            android_url,
            geo: (!geo.is_empty()).then(|| geo.into()),
            utm,
            imported_clicks: link.clicks,
            ..Content::to(destination, created_at)
        };
        (content, left)
    }
}

/// The beginning of a text, for messages.
fn excerpt(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
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

/// Addresses of one record whose reasons are told; a record may have any number of them.
const REASONS_TOLD: usize = 10;

/// The worst of some outcomes: a record with several slugs has its worst slug's outcome and code. The detail names each
/// slug that was lost, with its own code where that differs.
pub(crate) fn worst(lost: &[(Outcome, Reason)]) -> Option<(Outcome, Reason)> {
    let (outcome, worst) = lost.iter().max_by_key(|(outcome, _)| badness(*outcome))?;
    if lost.len() == 1 {
        return Some((*outcome, worst.clone()));
    }
    let others = lost.iter().map(|(_, reason)| reason).filter(|reason| !std::ptr::eq(*reason, worst));
    let mut details = vec![worst.detail.clone()];
    details.extend(others.take(REASONS_TOLD - 1).map(|other| match other.code == worst.code {
        true => other.detail.clone(),
        false => format!("{} ({})", other.detail, other.code),
    }));
    if lost.len() > details.len() {
        details.push(format!("and {} more", lost.len() - details.len()));
    }
    Some((*outcome, Reason { code: worst.code.clone(), detail: details.join("; ") }))
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
