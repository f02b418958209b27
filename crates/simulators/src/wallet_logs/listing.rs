//! The list as it stands now: which records there are, in which order, and what changes once they were served.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    id::Place,
    log::Log,
    logs::Logs,
    wire::{self, Look},
};

/// What stands behind a log beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtraKind {
    /// The same record again.
    Copy,
    /// The same id with another amount.
    Conflict,
    /// The same content with another id.
    Twin,
    /// A transfer of the wallet to itself.
    ToItself,
    /// The record itself, which stood elsewhere before.
    Moved,
}

/// A record that stands behind a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extra {
    /// The log it is made of.
    pub(super) of: u64,
    pub(super) kind: ExtraKind,
    /// Its time, if that is not the log's.
    pub(super) created_at_ms: Option<i64>,
}

impl Extra {
    /// Whether it is one more row of the source, and not one that is told twice.
    fn is_a_row(&self) -> bool {
        !matches!(self.kind, ExtraKind::Copy | ExtraKind::Conflict)
    }
}

/// What becomes of a record once a certain place was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Appear(u64),
    Edit(u64),
    Delete(u64),
    Move { from: u64, to: u64 },
}

/// One record of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Log(u64),
    Extra(Place, Extra),
}

impl Entry {
    fn place(self) -> Place {
        match self {
            Self::Log(index) => Place::at(index),
            Self::Extra(place, _) => place,
        }
    }
}

/// The records that stand elsewhere than the generator puts them, and those that are odd.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    extras: BTreeMap<Place, Extra>,
    gone: BTreeSet<u64>,
    edited: BTreeSet<u64>,
    changes: BTreeMap<u64, Vec<Change>>,
}

impl Listing {
    /// Puts a record behind the log at `index`, after those that are there.
    pub(super) fn add_extra(&mut self, index: u64, extra: Extra) {
        let last = self.extras_behind(index).next_back().map_or(0, |(place, _)| place.sub);
        self.extras.insert(Place { index, sub: last.saturating_add(1) }, extra);
    }

    /// Plans what becomes of a record once the log at `index` was served.
    pub(super) fn plan(&mut self, index: u64, change: Change) {
        if let Change::Appear(hidden) = change {
            self.gone.insert(hidden);
        }
        self.changes.entry(index).or_default().push(change);
    }

    pub(super) fn extras_behind(
        &self,
        index: u64,
    ) -> impl DoubleEndedIterator<Item = (&Place, &Extra)> + use<'_> {
        self.extras.range(Place { index, sub: 1 }..=Place { index, sub: u16::MAX })
    }

    /// The entries from a place to the end of a stretch.
    fn entries(&self, from: Place, end: u64) -> impl Iterator<Item = Entry> + use<'_> {
        (from.index..end).flat_map(move |index| {
            let log = (!self.gone.contains(&index)).then_some(Entry::Log(index));
            let extras = self.extras_behind(index).map(|(place, extra)| Entry::Extra(*place, *extra));
            log.into_iter().chain(extras).filter(move |entry| entry.place() >= from)
        })
    }

    /// The same place in the form that a cursor has: at a log, if nothing of the one before is left.
    pub(super) fn place_from(&self, place: Place) -> Place {
        let left = self.extras.range(place..Place::at(place.index + 1)).next();
        if place.sub > 0 && left.is_none() { Place::at(place.index + 1) } else { place }
    }

    /// The place of the record that so many of a stretch come before, as it stands now.
    pub(super) fn place_of(&self, offset: u64, range: Range<u64>) -> Place {
        let places = Place::at(range.start)..Place::at(range.end);
        let untouched =
            self.extras.range(places).next().is_none() && self.gone.range(range.clone()).next().is_none();
        if untouched {
            return Place::at(range.start.saturating_add(offset).min(range.end));
        }
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let entry = self.entries(Place::at(range.start), range.end).nth(skipped);
        entry.map_or(Place::at(range.end), Entry::place)
    }

    /// Whether something in these logs is not as the generator has it.
    fn touches(&self, logs: &Logs, range: Range<u64>) -> bool {
        let places = Place::at(range.start)..Place::at(range.end);
        self.extras.range(places).next().is_some()
            || self.gone.range(range.clone()).next().is_some()
            || self.edited.range(range.clone()).next().is_some()
            || logs.has_oddity(range)
    }

    /// How many rows the source says there are in a stretch.
    pub(super) fn total(&self, range: Range<u64>) -> u64 {
        let places = Place::at(range.start)..Place::at(range.end);
        let more = self.extras.range(places).filter(|(_, extra)| extra.is_a_row()).count() as u64;
        let gone = self.gone.range(range.clone()).count() as u64;
        range.end - range.start + more - gone
    }

    /// Writes up to `limit` records from a place, with commas between them; gives the place of the next one.
    pub(super) fn write(
        &self,
        out: &mut Vec<u8>,
        logs: &Logs,
        from: Place,
        end: u64,
        limit: u64,
    ) -> Option<Place> {
        let plain_end = (from.index + limit).min(end);
        if from.sub == 0 && !self.touches(logs, from.index..plain_end) {
            for index in from.index..plain_end {
                if index > from.index {
                    out.push(b',');
                }
                wire::record(out, &logs.log(index), Look::default());
            }
            return self.entries(Place::at(plain_end), end).next().map(Entry::place);
        }
        let mut entries = self.entries(from, end);
        for (written, entry) in entries.by_ref().take(limit as usize).enumerate() {
            if written > 0 {
                out.push(b',');
            }
            self.write_entry(out, logs, entry);
        }
        entries.next().map(Entry::place)
    }

    fn write_entry(&self, out: &mut Vec<u8>, logs: &Logs, entry: Entry) {
        let index = match entry {
            Entry::Log(index) => index,
            Entry::Extra(_, extra) => extra.of,
        };
        let edited = self.edited.contains(&index);
        let oddity = logs.oddity(index);
        let mut log = match entry {
            Entry::Log(index) => logs.log(index),
            Entry::Extra(place, extra) => logs.extra(place, extra),
        };
        if edited {
            edit(&mut log);
        }
        let to_itself = matches!(entry, Entry::Extra(_, Extra { kind: ExtraKind::ToItself, .. }));
        wire::record(out, &log, Look { oddity, edited, to_itself });
    }

    /// What is planned for after these logs were served happens now.
    pub(super) fn served(&mut self, logs: &Logs, range: Range<u64>) {
        let due: Vec<u64> = self.changes.range(range).map(|(index, _)| *index).collect();
        let due: Vec<_> = due.into_iter().filter_map(|index| self.changes.remove(&index)).flatten().collect();
        for change in due {
            match change {
                Change::Appear(index) => drop(self.gone.remove(&index)),
                Change::Edit(index) => drop(self.edited.insert(index)),
                Change::Delete(index) => drop(self.gone.insert(index)),
                Change::Move { from, to } => {
                    self.gone.insert(from);
                    self.add_extra(to, logs.moved(from, to));
                }
            }
        }
    }

    /// Whether anything is planned for after these logs were served.
    pub(super) fn is_waiting_for(&self, range: Range<u64>) -> bool {
        self.changes.range(range).next().is_some()
    }
}

fn edit(log: &mut Log) {
    log.status = if log.status == "reversed" { "completed" } else { "reversed" };
}
