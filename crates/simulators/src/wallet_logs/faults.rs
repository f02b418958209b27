//! What goes wrong, by name and place: the plan of a simulator's faults.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use super::{fault_names, listing::ExtraKind, oddity::Oddity, rough};
use crate::{
    plan::{Item, Place, PlanError, RetryAfter},
    reply::Delivery,
};

/// One fault that strikes a list request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    Error { status: u16, retry_after: RetryAfter },
    ThrottledAndExpired(RetryAfter),
    Throttled200,
    TokenExpires,
    Html(u16),
    Body(&'static str),
    Redirect(String),
    Delivered(Delivery),
    Slow(Duration),
    Huge(u64),
    OverLimit,
    ExpiredOnce(String),
    Expired(String),
    ExpiredAll(String),
    Cursor(CursorFault),
    NoData,
    EmptyPage,
    ShortPage,
}

/// What is wrong with the way a page leads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorFault {
    Repeat,
    Ring,
    Empty,
    Null,
    WithoutMore,
    Missing,
    NoMeta,
}

/// What is done to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Planting {
    Oddity(Oddity),
    Extra { kind: ExtraKind, distance: u64 },
    BadPage,
    Tied,
    Late,
    Edit,
    Delete,
    MoveBack(u64),
    MoveAhead(u64),
}

/// One planting and the records it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) planting: Planting,
    pub(super) choice: Choice,
}

/// Which records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Range {
        first: u64,
        count: u64,
    },
    /// One in so many, chosen by the seed.
    OneIn(u64),
}

/// All that goes wrong in one simulator, read from text such as `429@7,500@9x2,slow@19:3000,missing-id@4`.
///
/// A fault is `NAME@N`: the N-th list request with a valid token (from 1) or, for a fault of a record, the N-th
/// record of the list (from 0, oldest first). `xK` after it means K in a row; `:ARGUMENT` is named in the table of
/// [`FaultPlan::NAMES`]. An odd record without a place strikes one record in a thousand, chosen by the seed.
/// `none` is nothing at all; `rough` is a seeded mixture that a right migration survives without loss.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    text: String,
    requests: BTreeMap<u64, Vec<Spell>>,
    pub(super) rules: Vec<Rule>,
    pub(super) rough: bool,
    pub(super) gzip: bool,
    pub(super) stateful_cursor: bool,
    pub(super) trailing_empty_page: bool,
    pub(super) stalled_end: bool,
    no_retry_after: bool,
}

/// One fault and how many list requests in a row it strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spell {
    name: String,
    fault: Fault,
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

    /// The plan whose mixture of faults a right migration survives without loss.
    #[must_use]
    pub fn rough() -> Self {
        Self { text: "rough".to_owned(), rough: true, ..Self::default() }
    }

    /// Fills in what the seed decides.
    #[must_use]
    pub(super) fn settled(&self, seed: u64) -> Self {
        let mut plan = self.clone();
        if plan.rough {
            for (request, name, fault) in rough::requests(seed) {
                plan.requests.entry(request).or_default().push(Spell { name, fault, count: 1 });
            }
        }
        plan
    }

    /// What strikes the list request with this number (from 1).
    pub(super) fn strikes(&self, request: u64) -> Vec<Strike> {
        let begun = self.requests.range(..=request);
        let spells = begun.flat_map(|(start, spells)| spells.iter().map(move |spell| (*start, spell)));
        let lasting = spells.filter(|(start, spell)| request - start < spell.count);
        lasting.map(|(_, spell)| Strike { name: spell.name.clone(), fault: spell.fault.clone() }).collect()
    }

    /// How a `Retry-After` is written, unless a switch takes all of them away.
    pub(super) fn retry_after<'a>(&self, planned: &'a RetryAfter) -> &'a RetryAfter {
        if self.no_retry_after { &RetryAfter::Absent } else { planned }
    }

    fn take(&mut self, item: &str) -> Result<(), PlanError> {
        let item = Item::read(item)?;
        match item.name {
            "none" => switch(&item, &mut false),
            "rough" => switch(&item, &mut self.rough),
            "gzip" if item.place.is_none() => switch(&item, &mut self.gzip),
            "no-retry-after" => switch(&item, &mut self.no_retry_after),
            "stateful-cursor" => switch(&item, &mut self.stateful_cursor),
            "trailing-empty-page" => switch(&item, &mut self.trailing_empty_page),
            "stalled-end" => switch(&item, &mut self.stalled_end),
            name => match fault_names::planting(name, item.argument)? {
                Some(planting) => self.take_record(&item, planting),
                None => self.take_request(&item),
            },
        }
    }

    fn take_record(&mut self, item: &Item<'_>, planting: Planting) -> Result<(), PlanError> {
        let choice = match (item.place, &planting) {
            (Some(Place { at, count }), _) => Choice::Range { first: at, count },
            (None, Planting::Oddity(_) | Planting::Extra { .. }) => Choice::OneIn(1_000),
            (None, _) => return Err(PlanError::PlaceMissing(item.name.to_owned())),
        };
        self.rules.push(Rule { name: item.name.to_owned(), planting, choice });
        Ok(())
    }

    fn take_request(&mut self, item: &Item<'_>) -> Result<(), PlanError> {
        let fault = fault_names::request_fault(item.name, item.argument)?;
        let place = item.place.ok_or_else(|| PlanError::PlaceMissing(item.name.to_owned()))?;
        if place.at == 0 {
            return Err(PlanError::Unreadable(item.text.to_owned()));
        }
        let spell = Spell { name: item.name.to_owned(), fault, count: place.count };
        self.requests.entry(place.at).or_default().push(spell);
        Ok(())
    }
}

fn switch(item: &Item<'_>, turned: &mut bool) -> Result<(), PlanError> {
    if item.place.is_some() || item.argument.is_some() {
        return Err(PlanError::PlaceUnwanted(item.name.to_owned()));
    }
    *turned = true;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_table_can_be_planned() {
        for (name, _) in FaultPlan::NAMES {
            let name = name.split([':', ' ']).next().unwrap();
            let placed = format!("{name}@5").parse::<FaultPlan>();
            assert!(placed.is_ok() || name.parse::<FaultPlan>().is_ok(), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_name() {
        for (text, expected) in [
            ("bang@3", PlanError::UnknownName("bang".to_owned())),
            ("200@3", PlanError::UnknownName("200".to_owned())),
            ("429", PlanError::PlaceMissing("429".to_owned())),
            ("late", PlanError::PlaceMissing("late".to_owned())),
            ("429@0", PlanError::Unreadable("429@0".to_owned())),
            ("rough@3", PlanError::PlaceUnwanted("rough".to_owned())),
            ("amount@3:\"1\"", PlanError::Unreadable("amount:\"1\"".to_owned())),
            ("amount@3:1.", PlanError::Unreadable("amount:1.".to_owned())),
            ("unknown-type@3:a\"b", PlanError::Unreadable("unknown-type:a\"b".to_owned())),
        ] {
            assert_eq!(text.parse::<FaultPlan>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_fault_strikes_its_request_and_as_many_after_it_as_it_says() {
        let plan: FaultPlan = "429@7, 500@9x2 ,slow@9:30".parse().unwrap();
        let names = |request| plan.strikes(request).into_iter().map(|strike| strike.name).collect::<Vec<_>>();
        assert_eq!(names(6), [""; 0]);
        assert_eq!(names(7), ["429"]);
        assert_eq!(names(9), ["500", "slow"]);
        assert_eq!(names(10), ["500"]);
        assert_eq!(names(11), [""; 0]);
    }
}
