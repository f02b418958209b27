//! What must hold in every state, and what must happen in some.

use stateright::{Model, Property};

use crate::database::{Database, Segment, SegmentStatus, Status};
use crate::engine::{Action, Engine, State};
use crate::fetcher::Fetcher;
use crate::source::Source;

/// No record is in the target twice.
pub const TWICE: &str = "no record is in the target twice";
/// Every record before the cursor is staged or settled.
pub const CURSOR_AHEAD: &str = "no cursor is ahead of its records";
/// No record behind the cursor is staged, and none is staged twice.
pub const RECORD_AHEAD: &str = "no record is ahead of its cursor";
/// Staged records go only when they are settled.
pub const CLEANED: &str = "a segment is cleaned only when its records are settled";
/// What `completed` promises.
pub const COMPLETED: &str = "a completed job has every record exactly once";
/// Fetched, settled, ready and in the tail: the sums agree.
pub const CONSERVED: &str = "the numbers add up";
/// The epoch fences.
pub const FENCED: &str = "nobody commits under an old epoch";
/// No host finds what its code calls impossible.
pub const UNBROKEN: &str = "the job does not fail";
/// However everybody stopped, whoever starts next brings the job to its end.
pub const RESUMABLE: &str = "from every rest the job can be completed";

type Held = Property<Engine>;

/// All properties.
pub fn all() -> Vec<Property<Engine>> {
    vec![
        Held::always(TWICE, |_, state| state.database.target.iter().all(|written| *written <= 1)),
        Held::always(CURSOR_AHEAD, |engine, state| cursor_is_covered(&engine.source, &state.database)),
        Held::always(RECORD_AHEAD, |engine, state| records_are_covered(&engine.source, &state.database)),
        Held::always(CLEANED, |_, state| cleaned_is_written(&state.database)),
        Held::always(COMPLETED, |_, State { database, .. }| {
            database.job != Status::Completed || database.target.iter().all(|written| *written == 1)
        }),
        Held::always(CONSERVED, |_, state| adds_up(&state.database)),
        Held::always(FENCED, |_, state| !state.database.stale_commit),
        Held::always(UNBROKEN, |_, state| state.database.job != Status::Failed),
        Held::always(RESUMABLE, |engine, state| !state.at_rest() || ends_well(engine, state)),
        // The dangers are really met, or the model would prove nothing.
        Held::sometimes("the job completes", |_, state| state.database.job == Status::Completed),
        Held::sometimes("a fetcher whose epoch is over has a page in hand", |_, state| {
            state.fetchers.iter().any(|fetcher| match fetcher {
                Fetcher::Following { at, page: true } => at.partition.epoch < state.database.partition.epoch,
                _ => false,
            })
        }),
        Held::sometimes("a page commit is in flight and its fetcher is gone", |_, state| {
            let waits = |fetcher: &Fetcher| matches!(fetcher, Fetcher::Doubt { .. });
            state.database.in_flight.is_some() && !state.fetchers.iter().any(waits)
        }),
        Held::sometimes("two workers have picked one chunk", |_, State { workers, .. }| {
            workers[0].busy().is_some() && workers[0].busy() == workers[1].busy()
        }),
        Held::sometimes("a worker believes it holds what another one holds", |_, state| {
            state.workers[0].believes()
                && state.workers[1].believes()
                && state.workers[0].busy() == state.workers[1].busy()
        }),
        Held::sometimes("a worker read a chunk that was cleaned meanwhile", |_, state| {
            state.workers.iter().filter_map(|worker| worker.load()).any(|load| load.records.is_empty())
        }),
    ]
}

fn staged(segment: &&Segment) -> bool {
    segment.status != SegmentStatus::Cleaned
}

fn cursor_is_covered(source: &Source, database: &Database) -> bool {
    let staged = |record: u8| database.segments.iter().filter(staged).any(|s| s.records.contains(&record));
    (0u8..)
        .zip(&database.target)
        .take(source.passed(database.partition.position))
        .all(|(record, written)| *written > 0 || staged(record))
}

fn records_are_covered(source: &Source, database: &Database) -> bool {
    let all: Vec<u8> = database.segments.iter().flat_map(|segment| segment.records.iter().copied()).collect();
    let passed = source.passed(database.partition.position);
    all.len() <= passed && all.iter().enumerate().all(|(place, record)| place == usize::from(*record))
}

fn cleaned_is_written(database: &Database) -> bool {
    let cleaned = database.segments.iter().filter(|segment| segment.status == SegmentStatus::Cleaned);
    cleaned.flat_map(|segment| &segment.records).all(|record| database.target[usize::from(*record)] > 0)
}

/// What was fetched is settled, ready in a chunk, or in the tail; what is settled is in the target.
fn adds_up(database: &Database) -> bool {
    let partition = &database.partition;
    let staged: usize = database.segments.iter().map(|segment| segment.records.len()).sum();
    let settled: u8 = database.chunks.iter().filter_map(|chunk| chunk.settled).sum();
    let ready: u8 =
        database.chunks.iter().filter(|chunk| chunk.settled.is_none()).map(|chunk| chunk.records).sum();
    let tail = partition.staged - partition.chunked;
    let written: u8 = database.target.iter().sum();
    usize::from(partition.records) == staged
        && partition.records == settled + ready + tail
        && settled == written
}

/// More than it takes from the first page to the end.
const STEPS_TO_THE_END: usize = 100;

/// Whether one fetcher, one worker and one coordinator, undisturbed, complete the job.
fn ends_well(engine: &Engine, state: &State) -> bool {
    let mut state = state.clone();
    let mut actions = Vec::new();
    for _ in 0..STEPS_TO_THE_END {
        engine.actions(&state, &mut actions);
        let next = actions.drain(..).find(|action| undisturbed(*action));
        match next {
            Some(action) => state = engine.step(&state, action),
            None => break,
        }
    }
    state.database.job == Status::Completed
}

/// The steps of a first fetcher, a first worker and a coordinator to whom nothing happens.
fn undisturbed(action: Action) -> bool {
    use crate::fetcher::What::Page;
    matches!(
        action,
        Action::Take(0)
            | Action::Resume(0)
            | Action::Fetch(0)
            | Action::Commit(0, Page)
            | Action::StageAfterCursor(0)
            | Action::Pick(0, _)
            | Action::Load(0)
            | Action::Claim(0)
            | Action::Settle(0)
            | Action::Clean
            | Action::Finish
    )
}
