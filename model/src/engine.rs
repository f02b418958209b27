//! The actions: who can do what in a state, and what comes of it.

use stateright::{Model, Property};

use crate::Fault;
use crate::database::{Database, Lock, Pick, Status};
use crate::fetcher::{Checkpoint, Fetcher, What};
use crate::properties;
use crate::source::{Position, Source};
use crate::worker::{Load, Worker};

/// What is searched: the engine as it is or with a fault, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engine {
    /// What is broken.
    pub fault: Option<Fault>,
    /// What is fetched.
    pub source: Source,
    /// How many fetchers there are, at most two.
    pub fetchers: usize,
    /// How many workers there are, at most two.
    pub workers: usize,
    /// Whether a run, and with it its segment, may end at any page.
    pub run_ends: bool,
    /// Whether states count as one in which two fetchers or two workers have only changed places. It makes the search
    /// four times shorter, and its paths hard to follow.
    pub places_count: bool,
}

/// The database and everybody's memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// What survives.
    pub database: Database,
    /// In processes of their own.
    pub fetchers: [Fetcher; 2],
    /// In processes of their own, or in one.
    pub workers: [Worker; 2],
}

/// One step. The number says which fetcher or worker takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A fetcher takes the lease, which is free or has run out, and puts a former tail into a chunk.
    Take(usize),
    /// It reads what the open segment holds.
    Resume(usize),
    /// It fetches the page at its position.
    Fetch(usize),
    /// A page transaction is answered: it went through, or was refused and the fetcher is fenced.
    Commit(usize, What),
    /// A page transaction gets to its COMMIT, and the answer is lost.
    CommitUnanswered(usize, What),
    /// The server applies the page commit nobody knows of.
    PageLands,
    /// The server rolls the page commit nobody knows of back.
    PageVanishes,
    /// A fetcher looks up what became of its commit, waiting for one in flight.
    LookUpPage(usize),
    /// With [`Fault::CursorFirst`]: the page follows its cursor.
    StageAfterCursor(usize),
    /// A fetcher stops at a safe point: it puts its tail into a chunk and gives the lease back.
    Release(usize),
    /// Its process dies.
    CrashFetcher(usize),
    /// A host without a token puts the tail of a partition that nobody fetches into a chunk.
    FlushTails,
    /// A worker picks a chunk.
    Pick(usize, Pick),
    /// It halves a chunk that was begun too often.
    Split(usize),
    /// It reads the chunk's records.
    Load(usize),
    /// It opens a transaction and claims the chunk, or finds that it is not its own.
    Claim(usize),
    /// It writes and settles the chunk, and the COMMIT is answered.
    Settle(usize),
    /// It writes and settles the chunk, gets to its COMMIT, and the answer is lost.
    SettleUnanswered(usize),
    /// Its transaction is rolled back and will be tried again: a deadlock, a refused record.
    RollBack(usize),
    /// The server ends the session of a worker that sits in its transaction.
    EndSession(usize),
    /// The frozen worker wakes and sends its COMMIT into a session that is gone.
    Wake(usize),
    /// The server applies a chunk's commit nobody knows of.
    ChunkLands(Pick),
    /// The server rolls a chunk's commit nobody knows of back.
    ChunkVanishes(Pick),
    /// A worker looks up what became of its commit, waiting for one in flight.
    LookUpChunk(usize),
    /// Its process dies; the server rolls its transaction back.
    CrashWorker(usize),
    /// A coordinator cleans what is settled.
    Clean,
    /// A coordinator finds nothing left and completes the job, or fails it.
    Finish,
}

impl Default for Engine {
    /// Two segments: two pages of one record, which become one chunk of two or, if the tail is flushed, two of one; and
    /// one page more.
    fn default() -> Self {
        Self {
            fault: None,
            source: Source { pages: [1, 1, 1], pages_per_segment: 2, chunk_records: 2 },
            fetchers: 2,
            workers: 2,
            run_ends: false,
            places_count: false,
        }
    }
}

impl Engine {
    /// The engine with a fault.
    pub fn with(fault: Fault) -> Self {
        Self { fault: Some(fault), places_count: true, ..Self::default() }
    }

    fn fetcher_actions(&self, state: &State, me: usize, actions: &mut Vec<Action>) {
        let database = &state.database;
        match &state.fetchers[me] {
            Fetcher::Idle => {
                if database.free() && may_start(&state.fetchers, &Fetcher::Idle, me, self.fetchers) {
                    actions.push(Action::Take(me));
                }
                return;
            }
            Fetcher::Taken(_) => actions.push(Action::Resume(me)),
            Fetcher::Following { at, page } => {
                let free = database.in_flight.is_none();
                let whats: &[What] = if *page { &[What::Page, What::RunEnd] } else { &[What::Tail] };
                if !page {
                    actions.push(Action::Fetch(me));
                }
                // Whatever touches the partition's row waits for a commit that is in flight.
                for what in
                    whats.iter().copied().filter(|what| free && (self.run_ends || *what != What::RunEnd))
                {
                    let Some(commit) = at.commit(&self.source, what) else { continue };
                    actions.push(Action::Commit(me, what));
                    if database.accepts(&commit, self.fault) && self.fault != Some(Fault::CursorFirst) {
                        actions.push(Action::CommitUnanswered(me, what));
                    }
                }
                if free && !page {
                    actions.push(Action::Release(me));
                }
            }
            Fetcher::Doubt { .. } => {
                if database.in_flight.is_none() {
                    actions.push(Action::LookUpPage(me));
                }
            }
            Fetcher::Behind { .. } => actions.push(Action::StageAfterCursor(me)),
        }
        actions.push(Action::CrashFetcher(me));
    }

    fn worker_actions(&self, state: &State, me: usize, actions: &mut Vec<Action>) {
        let database = &state.database;
        match &state.workers[me] {
            Worker::Idle => {
                if !may_start(&state.workers, &Worker::Idle, me, self.workers) {
                    return;
                }
                // The other worker is in this process or in another one.
                let lowest = database.due(None);
                let beside = database.due(state.workers[1 - me].busy());
                actions.extend(lowest.map(|pick| Action::Pick(me, pick)));
                actions.extend(beside.filter(|_| beside != lowest).map(|pick| Action::Pick(me, pick)));
                return;
            }
            Worker::Picked(pick) => {
                actions.push(Action::Load(me));
                if database.may_split(*pick) {
                    actions.push(Action::Split(me));
                }
            }
            Worker::Loaded(_) => actions.push(Action::Claim(me)),
            Worker::Holding(_) => actions.extend([
                Action::Settle(me),
                Action::SettleUnanswered(me),
                Action::RollBack(me),
                Action::EndSession(me),
            ]),
            Worker::Frozen(_) => actions.push(Action::Wake(me)),
            Worker::Doubt(load) => {
                if database.settled_after_doubt(load.pick).is_some() {
                    actions.push(Action::LookUpChunk(me));
                }
            }
        }
        actions.push(Action::CrashWorker(me));
    }

    fn fetch(&self, state: &mut State, action: Action) {
        let (database, fetchers) = (&mut state.database, &mut state.fetchers);
        let following = |fetcher: &Fetcher| match fetcher {
            Fetcher::Following { at, .. } | Fetcher::Doubt { at, .. } | Fetcher::Behind { at } => at.clone(),
            Fetcher::Idle | Fetcher::Taken(_) => unreachable!("it follows no cursor"),
        };
        match action {
            Action::Take(me) => fetchers[me] = Fetcher::Taken(database.take()),
            Action::Resume(me) => {
                if let Fetcher::Taken(partition) = fetchers[me].clone() {
                    let segment_pages = database.resume(partition.segment);
                    fetchers[me] =
                        Fetcher::Following { at: Checkpoint { partition, segment_pages }, page: false };
                }
            }
            Action::Fetch(me) => {
                fetchers[me] = Fetcher::Following { at: following(&fetchers[me]), page: true };
            }
            Action::Commit(me, what) => {
                let at = following(&fetchers[me]);
                let commit = at.commit(&self.source, what).expect("the action is possible");
                if !database.accepts(&commit, self.fault) {
                    fetchers[me] = Fetcher::Idle;
                    return;
                }
                database.advance(&commit);
                if self.fault == Some(Fault::CursorFirst) && what == What::Page {
                    fetchers[me] = Fetcher::Behind { at };
                    return;
                }
                database.stage(&commit);
                fetchers[me] = Fetcher::after(&at, &commit, what);
            }
            Action::StageAfterCursor(me) => {
                let at = following(&fetchers[me]);
                let commit = at.commit(&self.source, What::Page).expect("the cursor is committed");
                database.stage(&commit);
                fetchers[me] = Fetcher::after(&at, &commit, What::Page);
            }
            Action::CommitUnanswered(me, what) => {
                let at = following(&fetchers[me]);
                database.in_flight = at.commit(&self.source, what);
                fetchers[me] = Fetcher::Doubt { at, what };
            }
            Action::PageLands => {
                if let Some(commit) = database.in_flight.take() {
                    database.advance(&commit);
                    database.stage(&commit);
                }
            }
            Action::PageVanishes => database.in_flight = None,
            Action::LookUpPage(me) => {
                let Fetcher::Doubt { at, what } = fetchers[me].clone() else { return };
                let commit = at.commit(&self.source, what).expect("it was sent");
                let again = Fetcher::Following { at: at.clone(), page: what != What::Tail };
                fetchers[me] = if self.fault == Some(Fault::Resend) {
                    again
                } else {
                    match at.was_committed(&commit, database) {
                        None => Fetcher::Idle,
                        Some(true) => Fetcher::after(&at, &commit, what),
                        Some(false) => again,
                    }
                };
            }
            Action::Release(me) => {
                database.flush_chunk(following(&fetchers[me]).partition.epoch);
                fetchers[me] = Fetcher::Idle;
            }
            Action::CrashFetcher(me) => fetchers[me] = Fetcher::Idle,
            _ => unreachable!("not a fetcher's action"),
        }
    }

    fn work(&self, state: &mut State, action: Action) {
        let (database, workers) = (&mut state.database, &mut state.workers);
        let load = |worker: &Worker| worker.load().expect("it has read its chunk").clone();
        let row = |me: usize| Lock::Worker(u8::try_from(me).expect("two workers"));
        match action {
            Action::Pick(me, pick) => workers[me] = Worker::Picked(pick),
            Action::Split(me) => {
                if let Worker::Picked(pick) = workers[me] {
                    database.split(pick);
                }
                workers[me] = Worker::Idle;
            }
            Action::Load(me) => {
                if let Worker::Picked(pick) = workers[me] {
                    workers[me] = Worker::Loaded(Load { pick, records: database.records(pick) });
                }
            }
            Action::Claim(me) => {
                let load = load(&workers[me]);
                let lock = row(me);
                workers[me] = if !database.claim(load.pick, lock.clone(), self.fault) {
                    Worker::Idle
                } else if load.records.len() != usize::from(load.pick.records) {
                    database.unlock(&lock, Lock::Free);
                    database.job = Status::Failed;
                    Worker::Idle
                } else {
                    Worker::Holding(load)
                };
            }
            Action::Settle(me) => {
                database.settle(&row(me), &load(&workers[me]).records);
                workers[me] = Worker::Idle;
            }
            Action::SettleUnanswered(me) => {
                let load = load(&workers[me]);
                database.unlock(&row(me), Lock::InFlight(load.records.clone()));
                workers[me] = Worker::Doubt(load);
            }
            Action::RollBack(me) => {
                database.unlock(&row(me), Lock::Free);
                workers[me] = Worker::Loaded(load(&workers[me]));
            }
            Action::EndSession(me) => {
                database.unlock(&row(me), Lock::Free);
                workers[me] = Worker::Frozen(load(&workers[me]));
            }
            Action::Wake(me) => workers[me] = Worker::Doubt(load(&workers[me])),
            Action::LookUpChunk(me) => {
                let load = load(&workers[me]);
                workers[me] = match database.settled_after_doubt(load.pick) {
                    Some(true) => Worker::Idle,
                    _ => Worker::Loaded(load),
                };
            }
            Action::CrashWorker(me) => {
                database.unlock(&row(me), Lock::Free);
                workers[me] = Worker::Idle;
            }
            _ => unreachable!("not a worker's action"),
        }
    }
}

impl Model for Engine {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            database: Database::new(self.source.passed(Position::End)),
            fetchers: [Fetcher::Idle, Fetcher::Idle],
            workers: [Worker::Idle, Worker::Idle],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let database = &state.database;
        for me in 0..2 {
            self.fetcher_actions(state, me, actions);
            self.worker_actions(state, me, actions);
        }
        if database.in_flight.is_some() {
            actions.extend([Action::PageLands, Action::PageVanishes]);
        }
        for chunk in database.chunks.iter().filter(|chunk| matches!(chunk.lock, Lock::InFlight(_))) {
            actions.extend([Action::ChunkLands(chunk.pick()), Action::ChunkVanishes(chunk.pick())]);
        }
        if database.has_tail() {
            actions.push(Action::FlushTails);
        }
        if database.any_cleanable(self.fault) {
            actions.push(Action::Clean);
        }
        if database.nothing_left() {
            actions.push(Action::Finish);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = self.step(last, action);
        state.renumber();
        if !self.places_count {
            state.sort();
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Engine {
    /// The state after an action.
    pub fn step(&self, last: &State, action: Action) -> State {
        let mut state = last.clone();
        match action {
            Action::FlushTails => state.database.fence(),
            Action::Clean => state.database.clean(self.fault),
            Action::Finish => state.database.finish(self.fault),
            Action::ChunkLands(pick) => state.database.chunk_lands(pick),
            Action::ChunkVanishes(pick) => state.database.chunk_vanishes(pick),
            Action::Take(_)
            | Action::Resume(_)
            | Action::Fetch(_)
            | Action::Commit(..)
            | Action::CommitUnanswered(..)
            | Action::PageLands
            | Action::PageVanishes
            | Action::LookUpPage(_)
            | Action::StageAfterCursor(_)
            | Action::Release(_)
            | Action::CrashFetcher(_) => self.fetch(&mut state, action),
            Action::Pick(..)
            | Action::Split(_)
            | Action::Load(_)
            | Action::Claim(_)
            | Action::Settle(_)
            | Action::SettleUnanswered(_)
            | Action::RollBack(_)
            | Action::EndSession(_)
            | Action::Wake(_)
            | Action::LookUpChunk(_)
            | Action::CrashWorker(_) => self.work(&mut state, action),
        }
        state
    }
}

/// Whether the idle process `me` may begin: as the first idle one, if not all that there are have begun.
fn may_start<P: PartialEq>(processes: &[P; 2], idle: &P, me: usize, limit: usize) -> bool {
    let begun = processes.iter().filter(|process| *process != idle).count();
    begun < limit && processes.iter().position(|process| process == idle) == Some(me)
}

impl State {
    /// Epochs are only compared, so they are numbered anew after each step, in their order. Without it they would grow
    /// with every take-over, and no search would come to an end.
    fn renumber(&mut self) {
        let mut epochs: Vec<&mut u8> = self.fetchers.iter_mut().filter_map(Fetcher::epoch_mut).collect();
        epochs.push(&mut self.database.partition.epoch);
        epochs.extend(self.database.in_flight.as_mut().map(|commit| &mut commit.epoch));
        let mut known: Vec<u8> = epochs.iter().map(|epoch| **epoch).collect();
        known.sort_unstable();
        known.dedup();
        for epoch in epochs {
            let rank = known.iter().position(|known| known == epoch).expect("it is among them");
            *epoch = u8::try_from(rank).expect("a handful of epochs");
        }
    }

    /// Puts fetchers and workers into an order of their own: it does not matter which is which.
    fn sort(&mut self) {
        self.fetchers.sort();
        if self.workers[0] > self.workers[1] {
            self.workers.swap(0, 1);
            for chunk in &mut self.database.chunks {
                if let Lock::Worker(worker) = &mut chunk.lock {
                    *worker = 1 - *worker;
                }
            }
        }
    }

    /// Whether nobody is at work: all processes are new, and no transaction is open.
    pub fn at_rest(&self) -> bool {
        self.fetchers.iter().all(|fetcher| *fetcher == Fetcher::Idle)
            && self.workers.iter().all(|worker| *worker == Worker::Idle)
            && self.database.in_flight.is_none()
            && self.database.chunks.iter().all(|chunk| chunk.lock == Lock::Free)
    }
}
