//! The conflict rules: what becomes of a record, given what the target holds.
//!
//! Deciding is pure. A [`Question`] says what a chunk needs to know, [`Knowledge`] is the target's answer, and the
//! [`Decider`] takes the records in order: same records, same order and same target give the same slugs.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use db::{Conn, Id};
use engine::{Outcome, Reason, Written};
use links::{ImportedUpdate, NewLink, NewOrigin, Origin, Place, Slug};

use crate::prepare::{Candidate, Prepared, settled, worst};
use crate::routes::Routes;
use crate::{Conflict, MAX_SUFFIX};

/// A domain and what it compares of a slug.
type Key = (Id, String);

/// Places asked for in one look-up.
const PLACES_AT_ONCE: usize = 2_000;

/// What the target holds of what a chunk asks for.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    origins: HashMap<String, Origin>,
    /// Keys that are taken, and by which link.
    taken: HashMap<Key, Id>,
}

impl Knowledge {
    /// What came over before, of these candidates.
    pub(crate) async fn learn_origins(
        &mut self,
        conn: Conn<'_>,
        rules: &Rules,
        candidates: &[&Candidate],
    ) -> links::Result<()> {
        let ids: Vec<&str> = candidates.iter().map(|candidate| candidate.source.id()).collect();
        let vendor = candidates.first().map_or("", |candidate| candidate.source.vendor());
        for origin in
            links::origins_of(conn, rules.workspace_id, vendor, rules.routes.target.id, &ids).await?
        {
            self.origins.insert(origin.source_id.clone(), origin);
        }
        Ok(())
    }

    /// Which of these places are taken.
    pub(crate) async fn learn_places(
        &mut self,
        conn: Conn<'_>,
        rules: &Rules,
        places: &[Place],
    ) -> links::Result<()> {
        for taken in links::taken(conn, places).await? {
            self.taken.insert(rules.key(&taken.place), taken.link_id);
        }
        Ok(())
    }

    /// Parts of a list of places small enough for one look-up.
    pub(crate) fn parts(places: &[Place]) -> impl Iterator<Item = &[Place]> {
        places.chunks(PLACES_AT_ONCE)
    }
}

/// The job's rules, as far as deciding needs them.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) workspace_id: Id,
    pub(crate) job_id: Id,
    pub(crate) conflict: Conflict,
    pub(crate) routes: std::sync::Arc<Routes>,
}

impl Rules {
    fn key(&self, place: &Place) -> Key {
        let mode = self
            .routes
            .domains()
            .find(|domain| domain.id == place.domain_id)
            .map_or_else(Default::default, |domain| domain.settings.case_mode);
        (place.domain_id, mode.key(&place.slug).into_owned())
    }

    fn shown(&self, place: &Place) -> String {
        let host = self.routes.domains().find(|domain| domain.id == place.domain_id);
        format!("{}/{}", host.map_or("?", |domain| domain.host.as_str()), place.slug)
    }
}

/// The places that candidates want, and, under the rule `suffix`, the alternatives of those that may collide.
pub(crate) fn wanted(candidates: &[&Candidate]) -> Vec<Place> {
    candidates.iter().flat_map(|candidate| candidate.places.iter().cloned()).collect()
}

/// The alternatives `-2` … `-50` of every place that is taken, or wanted twice in the chunk, or claimed before.
pub(crate) fn alternatives(
    rules: &Rules,
    knowledge: &Knowledge,
    claimed: &Claimed,
    candidates: &[&Candidate],
) -> Vec<Place> {
    if rules.conflict != Conflict::Suffix {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut alternatives = Vec::new();
    for candidate in candidates {
        for place in &candidate.places {
            let key = rules.key(place);
            let free = !knowledge.taken.contains_key(&key) && !claimed.has(&key) && seen.insert(key);
            if !free {
                let numbers = (2..=MAX_SUFFIX).map_while(|number| place.slug.with_suffix(number).ok());
                alternatives.extend(numbers.map(|slug| Place { domain_id: place.domain_id, slug }));
            }
        }
    }
    alternatives
}

/// What records that were decided would write but have not written yet: the keys they claim, and their own ids. Kept
/// as 64-bit hashes, so that a check over a whole account stays small.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    keys: HashMap<u64, Id>,
    /// Source ids, each with the digest of what came under it.
    records: HashMap<u64, links::Digest>,
}

impl Claimed {
    fn hash(key: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    }

    fn has(&self, key: &Key) -> bool {
        self.keys.contains_key(&Self::hash(key))
    }

    fn claim(&mut self, key: &Key, link: Id) {
        self.keys.insert(Self::hash(key), link);
    }

    fn owner(&self, key: &Key) -> Option<Id> {
        self.keys.get(&Self::hash(key)).copied()
    }

    /// The digest of what this job would have written under a source id before.
    fn record(&self, source_id: &str) -> Option<links::Digest> {
        self.records.get(&Self::hash(&source_id)).copied()
    }

    fn remember(&mut self, candidate: &Candidate) {
        self.records.insert(Self::hash(&candidate.source.id()), candidate.source_digest);
    }
}

/// What is to be done with a record.
#[derive(Debug)]
pub(crate) enum Action {
    /// Nothing: its outcome is known.
    Nothing(Written),
    /// Insert a link; the outcome holds once it is written.
    Insert(Box<NewLink>, Written),
    /// Write a link again.
    Update(Box<ImportedUpdate>, Written),
}

/// A collision under the rule `fail`.
#[derive(Debug)]
pub(crate) struct Collision(pub(crate) String);

/// What became of a slug.
enum Slot {
    /// Free; it is the link's now.
    New(Place),
    /// Taken; this one is the link's now.
    Renamed(Place, String),
    /// The link has it already.
    Held,
    /// The link does not get it.
    Lost(Outcome, Reason),
}

/// Decides the records of a chunk in order.
pub(crate) struct Decider<'d> {
    pub(crate) rules: &'d Rules,
    pub(crate) knowledge: &'d Knowledge,
    pub(crate) claimed: &'d mut Claimed,
}

impl Decider<'_> {
    /// One action for each record, in order, and the collisions under the rule `fail`.
    pub(crate) fn decide(&mut self, prepared: Vec<Prepared>) -> (Vec<Action>, Vec<Collision>) {
        let conflicting = conflicting_ids(&prepared);
        let mut first: HashSet<String> = HashSet::new();
        let mut collisions = Vec::new();
        let actions = prepared
            .into_iter()
            .map(|prepared| match prepared {
                Prepared::Settled(written) => Action::Nothing(written),
                Prepared::Candidate(candidate) if conflicting.contains(candidate.source.id()) => {
                    Action::Nothing(conflicting_duplicate(&candidate, "in the same chunk"))
                }
                Prepared::Candidate(candidate) if !first.insert(candidate.source.id().to_owned()) => {
                    Action::Nothing(duplicate(&candidate))
                }
                Prepared::Candidate(candidate) => self.one(*candidate, &mut collisions),
            })
            .collect();
        (actions, collisions)
    }

    fn one(&mut self, candidate: Candidate, collisions: &mut Vec<Collision>) -> Action {
        // While nothing is written yet, the database does not know what this job had before.
        if let Some(before) = self.claimed.record(candidate.source.id()) {
            return Action::Nothing(given_before(&candidate, before == candidate.source_digest));
        }
        let Some(origin) = self.knowledge.origins.get(candidate.source.id()) else {
            return self.insert(candidate, collisions);
        };
        let same = origin.source_digest == candidate.source_digest.as_bytes();
        let plain = |outcome, reason| {
            let candidate = &candidate;
            Action::Nothing(settled(
                outcome,
                Some(candidate.source.id().to_owned()),
                Some(candidate.label.clone()),
                reason,
            ))
        };
        if origin.job_id == self.rules.job_id {
            return Action::Nothing(given_before(&candidate, same));
        }
        if origin.is_deleted() {
            let detail =
                format!("{} was deleted here after it had been imported; it stays deleted", candidate.label);
            return plain(Outcome::Filtered, Reason::new("deleted_here", detail));
        }
        if same {
            return Action::Nothing(unchanged(&candidate, origin));
        }
        if !origin.is_untouched() {
            let detail = format!(
                "{} changed at the source, but was edited here; it stays as it is here",
                candidate.label
            );
            return plain(Outcome::Skipped, Reason::new("edited_here", detail));
        }
        self.update(candidate, origin, collisions)
    }

    fn insert(&mut self, candidate: Candidate, collisions: &mut Vec<Collision>) -> Action {
        let id = Id::new();
        let (slugs, mut lost, renamed) = self.slots(&candidate, id, false, collisions);
        if slugs.is_empty() {
            let (outcome, reason) = worst(&lost).expect("a link without slugs has lost at least one");
            let id = Some(candidate.source.id().to_owned());
            return Action::Nothing(settled(outcome, id, Some(candidate.label), reason));
        }
        self.claimed.remember(&candidate);
        let link = NewLink { id, origin: Some(self.origin(&candidate)), content: candidate.content, slugs };
        let digest = *links::digest(&link).as_bytes();
        let targets = link.slugs.len();
        lost.extend(candidate.lost);
        let written =
            written(&candidate.source, candidate.label, Outcome::Imported, &lost, renamed, digest, targets);
        Action::Insert(Box::new(link), written)
    }

    fn update(&mut self, candidate: Candidate, origin: &Origin, collisions: &mut Vec<Collision>) -> Action {
        self.claimed.remember(&candidate);
        let (new_slugs, mut lost, renamed) = self.slots(&candidate, origin.link_id, true, collisions);
        let targets = candidate.places.len() - lost.len();
        lost.extend(candidate.lost.iter().cloned());
        let update = ImportedUpdate {
            link_id: origin.link_id,
            version: origin.imported_version,
            origin: self.origin(&candidate),
            content: candidate.content,
            new_slugs,
        };
        // The digest of what stands there is known once it was written, with the slugs the link had before.
        let written =
            written(&candidate.source, candidate.label, Outcome::Updated, &lost, renamed, [0; 16], targets);
        Action::Update(Box::new(update), written)
    }

    fn origin(&self, candidate: &Candidate) -> NewOrigin {
        NewOrigin {
            source: candidate.source.clone(),
            domain_id: self.rules.routes.target.id,
            job_id: self.rules.job_id,
            source_digest: candidate.source_digest.as_bytes().to_vec(),
            source_json: Some(candidate.provenance.clone()),
        }
    }

    /// A place for each slug the candidate wants: the new ones, what it does not get, and what was renamed.
    #[allow(clippy::type_complexity)] // Named right here, used twice.
    fn slots(
        &mut self,
        candidate: &Candidate,
        link: Id,
        existing: bool,
        collisions: &mut Vec<Collision>,
    ) -> (Vec<Place>, Vec<(Outcome, Reason)>, Vec<String>) {
        let (mut places, mut lost, mut renamed) = (Vec::new(), Vec::new(), Vec::new());
        for place in &candidate.places {
            match self.slot(place, link, existing, collisions) {
                Slot::New(place) => places.push(place),
                Slot::Renamed(place, note) => {
                    places.push(place);
                    renamed.push(note);
                }
                Slot::Held => {}
                Slot::Lost(outcome, reason) => lost.push((outcome, reason)),
            }
        }
        (places, lost, renamed)
    }

    fn slot(&mut self, place: &Place, link: Id, existing: bool, collisions: &mut Vec<Collision>) -> Slot {
        match self.owner(place) {
            None => {
                self.claimed.claim(&self.rules.key(place), link);
                return Slot::New(place.clone());
            }
            Some(owner) if owner == link => return Slot::Held,
            Some(_) => {}
        }
        let shown = self.rules.shown(place);
        match self.rules.conflict {
            Conflict::Suffix => self.suffixed(place, link, existing, &shown),
            Conflict::Skip => Slot::Lost(
                Outcome::Skipped,
                Reason::new("slug_taken", format!("{shown} is taken; it was left alone")),
            ),
            Conflict::Fail => {
                collisions.push(Collision(shown.clone()));
                Slot::Lost(Outcome::Failed, Reason::new("slug_taken", format!("{shown} is taken")))
            }
        }
    }

    fn suffixed(&mut self, place: &Place, link: Id, existing: bool, shown: &str) -> Slot {
        let alternatives: Vec<Result<Slug, links::SlugError>> =
            (2..=MAX_SUFFIX).map(|number| place.slug.with_suffix(number)).collect();
        let at = |slug: Slug| Place { domain_id: place.domain_id, slug };
        // A slug that was renamed before is the link's already: it is never suffixed again.
        let held = |slug: &Slug| self.owner(&at(slug.clone())) == Some(link);
        if existing && alternatives.iter().flatten().any(held) {
            return Slot::Held;
        }
        for slug in alternatives {
            let candidate = match slug {
                Ok(slug) => at(slug),
                Err(error) => {
                    let detail = format!("{shown} is taken, and {error}");
                    return Slot::Lost(Outcome::Failed, Reason::new("suffix_too_long", detail));
                }
            };
            if self.owner(&candidate).is_none() {
                self.claimed.claim(&self.rules.key(&candidate), link);
                let note = format!("{shown} is taken; imported as {}", self.rules.shown(&candidate));
                return Slot::Renamed(candidate, note);
            }
        }
        let detail = format!("{shown} and {shown}-2 to {shown}-{MAX_SUFFIX} are taken");
        Slot::Lost(Outcome::Failed, Reason::new("no_free_suffix", detail))
    }

    fn owner(&self, place: &Place) -> Option<Id> {
        let key = self.rules.key(place);
        self.knowledge.taken.get(&key).copied().or_else(|| self.claimed.owner(&key))
    }
}

/// Ids that occur more than once with different content: none of these records can be trusted.
fn conflicting_ids(prepared: &[Prepared]) -> HashSet<String> {
    let mut digests: HashMap<&str, links::Digest> = HashMap::new();
    let mut conflicting = HashSet::new();
    for prepared in prepared {
        if let Prepared::Candidate(candidate) = prepared {
            let first = *digests.entry(candidate.source.id()).or_insert(candidate.source_digest);
            if first != candidate.source_digest {
                conflicting.insert(candidate.source.id().to_owned());
            }
        }
    }
    conflicting
}

/// A record whose id this job had in an earlier chunk.
fn given_before(candidate: &Candidate, same: bool) -> Written {
    if same { duplicate(candidate) } else { conflicting_duplicate(candidate, "earlier in this job") }
}

fn duplicate(candidate: &Candidate) -> Written {
    let detail = format!("{}: the source gave this link before in this job", candidate.label);
    let id = Some(candidate.source.id().to_owned());
    settled(Outcome::DuplicateInSource, id, Some(candidate.label.clone()), Reason::new("same_id", detail))
}

fn conflicting_duplicate(candidate: &Candidate, place: &str) -> Written {
    let detail =
        format!("{}: the id {} came with other content {place}", candidate.label, candidate.source.id());
    let id = Some(candidate.source.id().to_owned());
    Written::failed(id, Some(candidate.label.clone()), Reason::new("conflicting_duplicate", detail))
}

fn unchanged(candidate: &Candidate, origin: &Origin) -> Written {
    let label = candidate.label.clone();
    let digest = *origin.imported_digest.as_bytes();
    let targets = candidate.places.len();
    written(&candidate.source, label, Outcome::Unchanged, &candidate.lost, Vec::new(), digest, targets)
}

/// The outcome of a record of which something stands in the target: its own, or that of its worst slug.
fn written(
    source: &links::SourceKey,
    label: String,
    outcome: Outcome,
    lost: &[(Outcome, Reason)],
    renamed: Vec<String>,
    digest: [u8; 16],
    targets: usize,
) -> Written {
    let (outcome, reason) = match worst(lost) {
        Some((outcome, reason)) => (outcome, Some(reason)),
        None if renamed.is_empty() => (outcome, None),
        None => (outcome, Some(Reason::new("slug_suffixed", renamed.join("; ")))),
    };
    Written {
        source_id: Some(source.id().to_owned()),
        label: Some(label),
        reference: Some(format!("{}:{}", source.vendor(), source.id())),
        outcome,
        reason,
        digest,
        targets: u32::try_from(targets).unwrap_or(u32::MAX),
    }
}
