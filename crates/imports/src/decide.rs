//! The conflict rules: what becomes of a record, given what the target holds.
//!
//! Deciding is pure. `Knowledge` is what the target holds of what a chunk asks for, and the `Decider` takes the records
//! in order: same records, same order and same target give the same slugs.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use db::{Conn, Id, Reader, Tx};
use engine::{Outcome, Reason, Written};
use links::{Destination, ImportedUpdate, NewLink, NewOrigin, Origin, Place, Slug};

use crate::prepare::{Candidate, Prepared, settled, worst};
use crate::routes::Routes;
use crate::{Conflict, ERROR_LOG_CAP, MAX_SUFFIX};

/// A domain and what it compares of a slug.
type Key = (Id, String);

/// The reason code of a link that came over without some of what it had. The view `import_jobs` knows it, too.
pub(crate) const LEFT_BEHIND: &str = "left_behind";

/// Links of which is told what they left behind: half of the error log, so that there is room for those that failed.
const LEFT_BEHIND_TOLD: usize = ERROR_LOG_CAP as usize / 2;

/// Places asked for in one look-up.
const PLACES_AT_ONCE: usize = 2_000;

/// What the target holds of what a chunk asks for.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    origins: HashMap<String, Origin>,
    /// Keys that are taken, and by which link.
    taken: HashMap<Key, Id>,
}

/// What can be read from: the transaction of a chunk, or a check's reader.
pub(crate) trait Readable: Send {
    fn conn(&mut self) -> Conn<'_>;
}

impl Readable for Tx {
    fn conn(&mut self) -> Conn<'_> {
        Self::conn(self)
    }
}

impl Readable for Reader {
    fn conn(&mut self) -> Conn<'_> {
        Self::conn(self)
    }
}

impl Knowledge {
    /// Everything that deciding these candidates asks for: which came over before, which places are taken, and, under the
    /// rule `suffix`, which of the alternatives are.
    pub(crate) async fn learn(
        from: &mut impl Readable,
        rules: &Rules,
        claimed: &Claimed,
        candidates: &[&Candidate],
    ) -> links::Result<Self> {
        let mut knowledge = Self::default();
        if candidates.is_empty() {
            return Ok(knowledge);
        }
        knowledge.learn_origins(from.conn(), rules, candidates).await?;
        for part in wanted(candidates).chunks(PLACES_AT_ONCE) {
            knowledge.learn_places(from.conn(), rules, part).await?;
        }
        let alternatives = alternatives(rules, &knowledge, claimed, candidates);
        for part in alternatives.chunks(PLACES_AT_ONCE) {
            knowledge.learn_places(from.conn(), rules, part).await?;
        }
        Ok(knowledge)
    }

    /// What came over before, of these candidates.
    async fn learn_origins(
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
    async fn learn_places(&mut self, conn: Conn<'_>, rules: &Rules, places: &[Place]) -> links::Result<()> {
        for taken in links::taken(conn, places).await? {
            self.taken.insert(rules.key(&taken.place), taken.link_id);
        }
        Ok(())
    }
}

/// The job's rules, as far as deciding needs them.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) workspace_id: Id,
    pub(crate) job_id: Id,
    pub(crate) conflict: Conflict,
    pub(crate) routes: Arc<Routes>,
    /// Links that came over without some of what they had at the source, told so far in this process.
    pub(crate) left_behind: Arc<AtomicUsize>,
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

    /// Whether the destination is this very short URL.
    pub(crate) fn leads_to(&self, destination: &Destination, place: &Place) -> bool {
        self.routes.domains().find(|domain| domain.id == place.domain_id).is_some_and(|domain| {
            destination.is_self_reference(&domain.host, &place.slug, domain.settings.case_mode)
        })
    }

    fn shown(&self, place: &Place) -> String {
        let host = self.routes.domains().find(|domain| domain.id == place.domain_id);
        format!("{}/{}", host.map_or("?", |domain| domain.host.as_str()), place.slug)
    }
}

/// The places that candidates want.
fn wanted(candidates: &[&Candidate]) -> Vec<Place> {
    candidates.iter().flat_map(|candidate| candidate.places.iter().cloned()).collect()
}

/// The alternatives `-2` … `-50` of every place that is taken, wanted twice in the chunk, claimed before, or itself an
/// alternative that an earlier record may take.
fn alternatives(
    rules: &Rules,
    knowledge: &Knowledge,
    claimed: &Claimed,
    candidates: &[&Candidate],
) -> Vec<Place> {
    if rules.conflict != Conflict::Suffix {
        return Vec::new();
    }
    let mut alternatives = Vec::new();
    let mut known: HashSet<Key> = HashSet::new();
    let mut add = |place: &Place, known: &mut HashSet<Key>| {
        let numbers = (2..=MAX_SUFFIX).map_while(|number| place.slug.with_suffix(number).ok());
        for place in numbers.map(|slug| Place { domain_id: place.domain_id, slug }) {
            if known.insert(rules.key(&place)) {
                alternatives.push(place);
            }
        }
    };
    let mut seen = HashSet::new();
    let mut free = Vec::new();
    for place in candidates.iter().flat_map(|candidate| &candidate.places) {
        let key = rules.key(place);
        if knowledge.taken.contains_key(&key) || claimed.has(&key) || !seen.insert(key.clone()) {
            add(place, &mut known);
        } else {
            free.push((key, place));
        }
    }
    // One record's alternative may be what another one wants; that one then needs alternatives, too.
    loop {
        let before = free.len();
        free.retain(|(key, place)| {
            let stays = !known.contains(key);
            if !stays {
                add(place, &mut known);
            }
            stays
        });
        if free.len() == before {
            return alternatives;
        }
    }
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
    /// Insert a link with this digest; the outcome holds once it is written.
    Insert(Box<NewLink>, links::Digest, Written),
    /// Write a link again.
    Update(Box<Update>, Written),
}

/// A link to write again.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) link: ImportedUpdate,
    /// The source gives no date: the link keeps the one it has here.
    pub(crate) undated: bool,
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
        let digest = links::digest(&link);
        let targets = link.slugs.len();
        lost.extend(candidate.lost);
        let remarks = self.remarks(renamed, candidate.left_behind);
        let bytes = *digest.as_bytes();
        let written =
            written(&candidate.source, candidate.label, Outcome::Imported, &lost, remarks, bytes, targets);
        Action::Insert(Box::new(link), digest, written)
    }

    fn update(
        &mut self,
        mut candidate: Candidate,
        origin: &Origin,
        collisions: &mut Vec<Collision>,
    ) -> Action {
        self.claimed.remember(&candidate);
        let (new_slugs, mut lost, renamed) = self.slots(&candidate, origin.link_id, true, collisions);
        let remarks = self.remarks(renamed, std::mem::take(&mut candidate.left_behind));
        let targets = candidate.places.len() - lost.len();
        lost.extend(candidate.lost.iter().cloned());
        let link = ImportedUpdate {
            link_id: origin.link_id,
            version: origin.imported_version,
            origin: self.origin(&candidate),
            content: candidate.content,
            new_slugs,
        };
        // The digest of what stands there is known once it was written, with the slugs the link had before.
        let written =
            written(&candidate.source, candidate.label, Outcome::Updated, &lost, remarks, [0; 16], targets);
        Action::Update(Box::new(Update { link, undated: candidate.undated }), written)
    }

    fn remarks(&self, renamed: Vec<String>, mut left_behind: Vec<String>) -> Remarks {
        if !left_behind.is_empty()
            && self.rules.left_behind.fetch_add(1, Ordering::Relaxed) >= LEFT_BEHIND_TOLD
        {
            left_behind.clear();
        }
        Remarks { renamed, left_behind }
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
            match self.slot(candidate, place, link, existing, collisions) {
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

    fn slot(
        &mut self,
        candidate: &Candidate,
        place: &Place,
        link: Id,
        existing: bool,
        collisions: &mut Vec<Collision>,
    ) -> Slot {
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
            Conflict::Suffix => self.suffixed(candidate, place, link, existing, &shown),
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

    fn suffixed(
        &mut self,
        candidate: &Candidate,
        place: &Place,
        link: Id,
        existing: bool,
        shown: &str,
    ) -> Slot {
        let alternatives: Vec<Result<Slug, links::SlugError>> =
            (2..=MAX_SUFFIX).map(|number| place.slug.with_suffix(number)).collect();
        let at = |slug: Slug| Place { domain_id: place.domain_id, slug };
        // A slug that was renamed before is the link's already: it is never suffixed again. One that the source itself
        // gives the link is no renamed one.
        let own: HashSet<Key> = candidate.places.iter().map(|place| self.rules.key(place)).collect();
        let held = |slug: &Slug| {
            let place = at(slug.clone());
            self.owner(&place) == Some(link) && !own.contains(&self.rules.key(&place))
        };
        if existing && alternatives.iter().flatten().any(held) {
            return Slot::Held;
        }
        for slug in alternatives {
            let free = match slug {
                Ok(slug) => at(slug),
                Err(error) => {
                    let detail = format!("{shown} is taken, and {error}");
                    return Slot::Lost(Outcome::Failed, Reason::new("suffix_too_long", detail));
                }
            };
            // A link never leads to itself, and a slug that the same record wants is left to it.
            if self.owner(&free).is_none()
                && !own.contains(&self.rules.key(&free))
                && !self.rules.leads_to(&candidate.content.destination, &free)
            {
                self.claimed.claim(&self.rules.key(&free), link);
                let note = format!("{shown} is taken; imported as {}", self.rules.shown(&free));
                return Slot::Renamed(free, note);
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

/// Ids that occur more than once with different content, one of which may be unreadable: none of these records can be
/// trusted.
fn conflicting_ids(prepared: &[Prepared]) -> HashSet<String> {
    let mut digests: HashMap<&str, links::Digest> = HashMap::new();
    let mut conflicting = HashSet::new();
    for prepared in prepared {
        match prepared {
            Prepared::Candidate(candidate) => {
                let first = *digests.entry(candidate.source.id()).or_insert(candidate.source_digest);
                if first != candidate.source_digest {
                    conflicting.insert(candidate.source.id().to_owned());
                }
            }
            Prepared::Settled(written) if written.outcome == Outcome::Failed => {
                conflicting.extend(written.source_id.clone());
            }
            Prepared::Settled(_) => {}
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
    let remarks = Remarks::default();
    written(&candidate.source, label, Outcome::Unchanged, &candidate.lost, remarks, digest, targets)
}

/// What is worth telling of a record that came over.
#[derive(Default)]
struct Remarks {
    /// Slugs that were taken, with what the link got instead.
    renamed: Vec<String>,
    /// What did not come over with it.
    left_behind: Vec<String>,
}

impl Remarks {
    fn reason(mut self) -> Option<Reason> {
        let left = (!self.left_behind.is_empty())
            .then(|| format!("did not come over: {}", self.left_behind.join(", ")));
        let code = if self.renamed.is_empty() { LEFT_BEHIND } else { "slug_suffixed" };
        self.renamed.extend(left);
        (!self.renamed.is_empty()).then(|| Reason::new(code, self.renamed.join("; ")))
    }
}

/// The outcome of a record of which something stands in the target: its own, or that of its worst slug.
fn written(
    source: &links::SourceKey,
    label: String,
    outcome: Outcome,
    lost: &[(Outcome, Reason)],
    remarks: Remarks,
    digest: [u8; 16],
    targets: usize,
) -> Written {
    let (outcome, reason) = match (worst(lost), remarks.reason()) {
        (Some((outcome, lost)), Some(remark)) => {
            let detail = format!("{}; {}", lost.detail, remark.detail);
            (outcome, Some(Reason { code: lost.code, detail }))
        }
        (Some((outcome, lost)), None) => (outcome, Some(lost)),
        (None, remark) => (outcome, remark),
    };
    Written {
        source_id: Some(source.id().to_owned()),
        label: Some(label),
        reference: Some(source.reference()),
        outcome,
        reason,
        digest,
        targets: u32::try_from(targets).unwrap_or(u32::MAX),
    }
}
