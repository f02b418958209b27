//! What goes wrong, by name and place: the plan of a simulator's faults.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use super::{
    fault_names,
    records::{RecordFault, RecordRule},
    rough,
};
use crate::plan::Item;
pub use crate::plan::{PlanError, RetryAfter};

/// One fault that strikes a list request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An error with this status and its documented `message`.
    Error {
        /// HTTP status.
        status: u16,
        /// The machine code in the body.
        message: &'static str,
        /// The `Retry-After` header.
        retry_after: RetryAfter,
    },
    /// The body of an error with status 200.
    ErrorWith200,
    /// From this request on the token is refused everywhere, until it is renewed.
    TokenExpires,
    /// An HTML page with this status.
    Html(u16),
    /// `{}` with status 200.
    EmptyObject,
    /// No body at all with status 200.
    EmptyBody,
    /// 302 to another place.
    Redirect(String),
    /// Half the page under the whole page's `Content-Length`, then the connection is cut.
    Cut,
    /// Half the page in chunks, then the connection is cut.
    CutChunked,
    /// The connection is closed before any answer.
    Drop,
    /// A page that ends in the middle, correctly announced.
    TruncatedJson,
    /// The page compressed, if the client accepts that.
    Gzip,
    /// The page compressed and without its last bytes, correctly announced; cut if the client takes no gzip.
    TruncatedGzip(usize),
    /// The answer comes this much later.
    Slow(Duration),
    /// Half the answer, this pause, the other half.
    Stall(Duration),
    /// A body of this many bytes, sent in chunks as long as anybody reads.
    Huge(u64),
    /// The page gives the cursor that was asked for.
    RepeatCursor,
    /// The page gives a cursor that leads back to the first page's end.
    Ring,
    /// The page has no `pagination`.
    NoPagination,
    /// `pagination` has neither `search_after` nor `next`.
    NoCursor,
    /// `pagination.next` points to another origin.
    ForeignNext(String),
    /// 400 for the cursor, as if it had been valid for too short a time.
    DeadCursor,
    /// A page without links and with a new cursor, behind which the walk goes on.
    EmptyPage,
    /// A page of half as many links as were asked for, with a cursor.
    ShortPage,
    /// The page begins with this many links of the page before.
    Overlap(usize),
    /// `pagination.total` is not what the group has: `+K` or `-K` off, or this very text.
    TotalOff(String),
    /// A new link appears on top before this request is answered; a walk that has begun does not meet it.
    LinkAdded,
    /// A link appears further down (as one that moved into the group); the walk meets it.
    LinkAddedAhead,
    /// A link further down is deleted; the walk does not meet it.
    LinkDeleted,
    /// A link the walk has already met is deleted.
    LinkDeletedBehind,
}

/// All that goes wrong in one simulator, read from text such as `429@7,500@9x2,slow@19:3000,missing-long-url@4`.
///
/// A fault is `NAME@N`: the N-th list request (from 1) or, for a broken record, the N-th link of the account
/// (from 0, newest first). `xK` after it means K in a row; `:ARGUMENT` is named in the table of
/// [`FaultPlan::NAMES`]. A broken record without a place strikes one link in a thousand, chosen by the seed.
/// `none` is nothing at all; `rough` is a seeded mixture that a right importer survives without help.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    text: String,
    requests: BTreeMap<u64, Vec<Spell>>,
    pub(super) records: Vec<RecordRule>,
    rough: bool,
    gzip: bool,
    bare_limits: bool,
    trailing_empty_page: bool,
    total: bool,
}

/// One fault and how many list requests in a row it strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spell {
    fault: Fault,
    name: String,
    count: u64,
}

/// A fault that strikes now, with the name it was planned under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Strike {
    pub(super) name: String,
    pub(super) fault: Fault,
}

impl FaultPlan {
    /// Every name with its meaning, for help texts.
    pub const NAMES: &'static [(&'static str, &'static str)] = fault_names::NAMES;

    /// The plan in which nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The plan whose mixture of faults a right importer survives without help.
    #[must_use]
    pub fn rough() -> Self {
        Self { text: "rough".to_owned(), rough: true, ..Self::default() }
    }

    /// Fills in what the seed decides.
    #[must_use]
    pub(super) fn settled(&self, seed: u64) -> Self {
        let mut plan = self.clone();
        if plan.rough {
            plan.records.extend(rough::records());
            for (request, name, fault) in rough::requests(seed) {
                plan.requests.entry(request).or_default().push(Spell { fault, name, count: 1 });
            }
        }
        plan
    }

    /// Whether planted records should be present at least once each.
    pub(super) fn plants_every_kind(&self) -> bool {
        self.rough
    }

    /// Whether every answer is compressed for a client that accepts it.
    pub(super) fn always_gzip(&self) -> bool {
        self.gzip
    }

    /// Whether a page that fills exactly is followed by an empty one.
    pub(super) fn trailing_empty_page(&self) -> bool {
        self.trailing_empty_page
    }

    /// Whether every page tells how many links the group has.
    pub(super) fn tells_total(&self) -> bool {
        self.total
    }

    /// What strikes the list request with this number (from 1).
    pub(super) fn strikes(&self, request: u64) -> Vec<Strike> {
        let begun = self.requests.range(..=request);
        let spells = begun.flat_map(|(start, spells)| spells.iter().map(move |spell| (*start, spell)));
        let lasting = spells.filter(|(start, spell)| request - start < spell.count);
        lasting.map(|(_, spell)| self.strike(spell)).collect()
    }

    fn strike(&self, spell: &Spell) -> Strike {
        let mut fault = spell.fault.clone();
        if let (true, Fault::Error { retry_after, .. }) = (self.bare_limits, &mut fault) {
            *retry_after = RetryAfter::Absent;
        }
        Strike { name: spell.name.clone(), fault }
    }

    fn take(&mut self, item: &str) -> Result<(), PlanError> {
        let item = Item::read(item)?;
        match item.name {
            "none" => self.switch(&item, |_| {}),
            "rough" => self.switch(&item, |plan| plan.rough = true),
            "gzip" if item.place.is_none() => self.switch(&item, |plan| plan.gzip = true),
            "no-retry-after" => self.switch(&item, |plan| plan.bare_limits = true),
            "trailing-empty-page" => self.switch(&item, |plan| plan.trailing_empty_page = true),
            "total" => self.switch(&item, |plan| plan.total = true),
            name => match RecordFault::named(name) {
                Some(fault) => {
                    self.records.push(record_rule(&item, fault));
                    Ok(())
                }
                None => self.take_request(&item),
            },
        }
    }

    fn switch(&mut self, item: &Item<'_>, turn: impl FnOnce(&mut Self)) -> Result<(), PlanError> {
        if item.place.is_some() || item.argument.is_some() {
            return Err(PlanError::PlaceUnwanted(item.name.to_owned()));
        }
        turn(self);
        Ok(())
    }

    fn take_request(&mut self, item: &Item<'_>) -> Result<(), PlanError> {
        let fault = fault_names::request_fault(item.name, item.argument)?;
        let place = item.place.ok_or_else(|| PlanError::PlaceMissing(item.name.to_owned()))?;
        if place.at == 0 {
            return Err(PlanError::Unreadable(item.text.to_owned()));
        }
        let spell = Spell { fault, name: item.name.to_owned(), count: place.count };
        self.requests.entry(place.at).or_default().push(spell);
        Ok(())
    }
}

impl FromStr for FaultPlan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut plan = Self { text: text.trim().to_owned(), ..Self::default() };
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            plan.take(item)?;
        }
        Ok(plan)
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.text.is_empty() { "none" } else { &self.text })
    }
}

/// The rule of an item that names a broken record.
fn record_rule(item: &Item<'_>, fault: RecordFault) -> RecordRule {
    match item.place {
        Some(place) => RecordRule::from_place(fault, place.at, place.count),
        None => RecordRule::share(fault, 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plan: &FaultPlan, request: u64) -> Vec<String> {
        plan.strikes(request).into_iter().map(|strike| strike.name).collect()
    }

    #[test]
    fn a_fault_strikes_its_request_and_as_many_after_it_as_it_says() {
        let plan: FaultPlan = "429@7, 500@9x2 ,slow@9:30".parse().unwrap();
        assert_eq!(names(&plan, 6), [""; 0]);
        assert_eq!(names(&plan, 7), ["429"]);
        assert_eq!(names(&plan, 8), [""; 0]);
        assert_eq!(names(&plan, 9), ["500", "slow"]);
        assert_eq!(names(&plan, 10), ["500"]);
        assert_eq!(names(&plan, 11), [""; 0]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_name() {
        for (text, expected) in [
            ("bang@3", PlanError::UnknownName("bang".to_owned())),
            ("429", PlanError::PlaceMissing("429".to_owned())),
            ("429@0", PlanError::Unreadable("429@0".to_owned())),
            ("429@seven", PlanError::Unreadable("429@seven".to_owned())),
            ("500@3x", PlanError::Unreadable("500@3x".to_owned())),
            ("500@3x0", PlanError::Unreadable("500@3x0".to_owned())),
            ("slow@3:long", PlanError::Unreadable("slow:long".to_owned())),
            ("rough@3", PlanError::PlaceUnwanted("rough".to_owned())),
            ("no-retry-after@3", PlanError::PlaceUnwanted("no-retry-after".to_owned())),
        ] {
            assert_eq!(text.parse::<FaultPlan>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn every_name_in_the_table_can_be_planned() {
        for (name, _) in FaultPlan::NAMES {
            let name = name.split(':').next().unwrap();
            let placed = format!("{name}@5").parse::<FaultPlan>();
            assert!(placed.is_ok() || name.parse::<FaultPlan>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_switch_takes_the_header_from_every_limit() {
        let plan: FaultPlan = "429@1:1,403-limit@2:1,no-retry-after".parse().unwrap();
        for request in [1, 2] {
            let strikes = plan.strikes(request);
            let Fault::Error { retry_after, .. } = &strikes[0].fault else { panic!("an error") };
            assert_eq!(*retry_after, RetryAfter::Absent);
        }
    }

    #[test]
    fn a_plan_is_shown_as_it_was_written() {
        assert_eq!(FaultPlan::none().to_string(), "none");
        assert_eq!("429@7,rough".parse::<FaultPlan>().unwrap().to_string(), "429@7,rough");
    }
}
