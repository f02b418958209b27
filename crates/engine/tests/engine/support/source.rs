//! A scripted source.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use db::Timestamp;
use engine::{Cursor, Page, PartitionSpec, Position, Profile, Source, SourceError};
use parking_lot::Mutex;

use super::Door;

/// Where a scripted page points.
#[derive(Clone)]
pub(crate) enum Next {
    Following,
    End,
    /// To the page of this number.
    To(usize),
    /// To this very cursor, which is another name of the page of this number.
    Named(&'static str, usize),
}

#[derive(Clone)]
pub(crate) struct ScriptedPage {
    pub(crate) records: Vec<Bytes>,
    pub(crate) next: Next,
}

/// What happens instead of (or before) an answer.
#[derive(Clone)]
pub(crate) enum Fault {
    Unavailable,
    Malformed,
    Unauthorized,
    WaitUntil(Timestamp),
    /// From now on every cursor given out before is refused.
    Expired,
    /// The answer waits at the door.
    Held(Door),
    Panic,
}

#[derive(Default)]
struct Faults {
    once: HashMap<(usize, usize), VecDeque<Fault>>,
    always: HashMap<(usize, usize), Fault>,
}

/// Partitions of pages, with a log of what was asked.
pub(crate) struct Script {
    profile: Profile,
    parts: Mutex<Vec<Vec<ScriptedPage>>>,
    names: Mutex<HashMap<String, usize>>,
    faults: Mutex<Faults>,
    asked: Mutex<Vec<(usize, usize)>>,
    generation: AtomicUsize,
    /// Cursors of an earlier generation are refused.
    strict: Mutex<bool>,
    /// The first partition is named twice.
    alike: bool,
    /// The last partition comes after all others.
    closing: bool,
    /// How many records each partition is said to have beforehand, if not as many as it has.
    beforehand: Option<Option<i64>>,
    /// What pages say of the number of records, by partition and page.
    totals: Mutex<HashMap<(usize, usize), i64>>,
}

pub(crate) fn record(id: usize) -> Bytes {
    Bytes::from(format!("{{\"id\":\"r{id:06}\",\"body\":\"body of {id}\"}}"))
}

/// A record that makes the sink do something.
pub(crate) fn record_that(id: usize, does: &str) -> Bytes {
    Bytes::from(format!("{{\"id\":\"r{id:06}\",\"body\":\"body of {id}\",\"do\":\"{does}\"}}"))
}

/// A record whose unique column has this value.
pub(crate) fn record_with_other(id: usize, other: &str) -> Bytes {
    Bytes::from(format!("{{\"id\":\"r{id:06}\",\"body\":\"body of {id}\",\"other\":\"{other}\"}}"))
}

impl Script {
    /// One partition of `records` numbered records in pages of `size`.
    pub(crate) fn numbered(records: usize, size: usize) -> Self {
        Self::of((0..records).map(record).collect(), size)
    }

    /// One partition of these records in pages of `size`.
    pub(crate) fn of(records: Vec<Bytes>, size: usize) -> Self {
        Self::pages(records.chunks(size).map(|page| page.to_vec()).collect())
    }

    /// One partition of these pages.
    pub(crate) fn pages(pages: Vec<Vec<Bytes>>) -> Self {
        Self::partitions(vec![pages], 1)
    }

    /// Partitions of pages.
    pub(crate) fn partitions(parts: Vec<Vec<Vec<Bytes>>>, side_by_side: usize) -> Self {
        let parts = parts
            .into_iter()
            .map(|pages| {
                let last = pages.len().saturating_sub(1);
                pages
                    .into_iter()
                    .enumerate()
                    .map(|(index, records)| ScriptedPage {
                        records,
                        next: if index == last { Next::End } else { Next::Following },
                    })
                    .collect()
            })
            .collect();
        Self {
            profile: Profile {
                name: "script",
                parallel_partitions: side_by_side,
                stalled_is_end: false,
                prefetch: true,
                stateful_cursor: false,
            },
            parts: Mutex::new(parts),
            names: Mutex::default(),
            faults: Mutex::default(),
            asked: Mutex::default(),
            generation: AtomicUsize::new(0),
            strict: Mutex::new(false),
            alike: false,
            closing: false,
            beforehand: None,
            totals: Mutex::default(),
        }
    }

    /// The last partition comes after all others.
    pub(crate) fn closing(mut self) -> Self {
        self.closing = true;
        self
    }

    /// The partitions asked so far, in order.
    pub(crate) fn asked_parts(&self) -> Vec<usize> {
        self.asked.lock().iter().map(|(part, _)| *part).collect()
    }

    /// Says this of the number of records beforehand, of every partition.
    pub(crate) fn beforehand(mut self, count: Option<i64>) -> Self {
        self.beforehand = Some(count);
        self
    }

    /// A page says that its partition has so many records.
    pub(crate) fn total(self, part: usize, page: usize, total: i64) -> Self {
        self.totals.lock().insert((part, page), total);
        self
    }

    pub(crate) fn named_alike(mut self) -> Self {
        self.alike = true;
        self
    }

    pub(crate) fn profile_with(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.profile);
        self
    }

    /// Where a page of the first partition points.
    pub(crate) fn next(self, page: usize, next: Next) -> Self {
        if let Next::Named(name, to) = &next {
            self.names.lock().insert((*name).to_owned(), *to);
        }
        self.parts.lock()[0][page].next = next;
        self
    }

    /// Happens once, when the page of the first partition is asked for; several queue.
    pub(crate) fn once(self, page: usize, fault: Fault) -> Self {
        self.add_once(0, page, fault);
        self
    }

    pub(crate) fn add_once(&self, part: usize, page: usize, fault: Fault) {
        self.faults.lock().once.entry((part, page)).or_default().push_back(fault);
    }

    /// Happens whenever the page is asked for.
    pub(crate) fn always(self, part: usize, page: usize, fault: Fault) -> Self {
        self.faults.lock().always.insert((part, page), fault);
        self
    }

    pub(crate) fn heal(&self) {
        *self.faults.lock() = Faults::default();
    }

    /// The cursor of an earlier generation is refused from now on, even the one a segment began at.
    pub(crate) fn expire_all(&self) {
        *self.strict.lock() = true;
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Changes a page after it was given out.
    pub(crate) fn change(&self, page: usize, records: Vec<Bytes>) {
        self.parts.lock()[0][page].records = records;
    }

    /// Makes a page point elsewhere after it was given out.
    pub(crate) fn point(&self, page: usize, next: Next) {
        self.parts.lock()[0][page].next = next;
    }

    /// Ends the first partition with this page.
    pub(crate) fn end_with(&self, page: usize) {
        self.parts.lock()[0][page].next = Next::End;
    }

    /// The pages asked for so far, in order.
    pub(crate) fn asked(&self) -> Vec<usize> {
        self.asked.lock().iter().map(|(_, page)| *page).collect()
    }

    pub(crate) fn asked_of(&self, part: usize) -> Vec<usize> {
        self.asked.lock().iter().filter(|(of, _)| *of == part).map(|(_, page)| *page).collect()
    }

    pub(crate) fn forget_asked(&self) {
        self.asked.lock().clear();
    }

    fn locate(&self, at: &Position) -> Result<usize, SourceError> {
        let cursor = match at {
            Position::Beginning => return Ok(0),
            Position::At(cursor) => cursor.as_str(),
            Position::End => panic!("the engine asked for the end"),
        };
        if let Some(page) = self.names.lock().get(cursor) {
            return Ok(*page);
        }
        let (page, generation) =
            cursor[1..].split_once('.').expect("the engine gives back what it was given");
        let (page, generation): (usize, usize) = (page.parse().unwrap(), generation.parse().unwrap());
        if *self.strict.lock() && generation < self.generation.load(Ordering::SeqCst) {
            return Err(SourceError::CursorExpired(format!("c{page} is of generation {generation}")));
        }
        Ok(page)
    }

    fn cursor(&self, page: usize) -> Position {
        let generation = self.generation.load(Ordering::SeqCst);
        Position::At(Cursor::new(format!("c{page}.{generation}")).unwrap())
    }

    async fn fail(&self, fault: Fault) -> Result<(), SourceError> {
        match fault {
            Fault::Unavailable => Err(SourceError::Unavailable("connection refused".into())),
            Fault::Malformed => Err(SourceError::Malformed("HTML with status 200".into())),
            Fault::Unauthorized => Err(SourceError::Unauthorized("token revoked".into())),
            Fault::WaitUntil(until) => Err(SourceError::WaitUntil { until, reason: "monthly quota".into() }),
            Fault::Expired => {
                self.generation.fetch_add(1, Ordering::SeqCst);
                Err(SourceError::CursorExpired("EXPIRED".into()))
            }
            Fault::Held(door) => {
                door.pass().await;
                Ok(())
            }
            Fault::Panic => panic!("the source broke"),
        }
    }
}

#[async_trait]
impl Source for Script {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError> {
        let parts = self.parts.lock();
        let twice = self.alike.then_some(0);
        Ok((0..parts.len())
            .chain(twice)
            .map(|part| PartitionSpec {
                key: format!("p{part}"),
                expected: self
                    .beforehand
                    .unwrap_or_else(|| Some(parts[part].iter().map(|page| page.records.len() as i64).sum())),
                left_out: None,
                closing: self.closing && part == parts.len() - 1,
            })
            .collect())
    }

    async fn page(&self, partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError> {
        let part: usize = partition.key[1..].parse().unwrap();
        let number = self.locate(at)?;
        self.asked.lock().push((part, number));
        let fault = {
            let mut faults = self.faults.lock();
            let once = faults.once.get_mut(&(part, number)).and_then(VecDeque::pop_front);
            once.or_else(|| faults.always.get(&(part, number)).cloned())
        };
        if let Some(fault) = fault {
            self.fail(fault).await?;
        }
        let page = self.parts.lock()[part].get(number).cloned();
        let Some(page) = page else { panic!("page {number} was never pointed to") };
        let next = match page.next {
            Next::End => Position::End,
            Next::Following => self.cursor(number + 1),
            Next::To(other) => self.cursor(other),
            Next::Named(name, _) => Position::At(Cursor::new(name).unwrap()),
        };
        let total = self.totals.lock().get(&(part, number)).copied();
        Ok(Page { records: page.records, next, total, retries: 0 })
    }
}
