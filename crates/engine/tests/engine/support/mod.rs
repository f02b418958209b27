//! A bench for the engine: a scripted source, a sink with faults, and a runner to start and stop.

pub(crate) mod proxy;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod sql;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use db::{Database, Id, Timestamp};
use engine::metrics::Metrics;
use engine::runner::Event;
use engine::store::{history, jobs};
use engine::{
    Job, JobEvent, JobId, Kind, Limits, Mode, NewJob, Runner, Sink, SinkError, Source, SourceError, Status,
    Store,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use sink::TestSink;
use source::Script;

/// Nothing in these tests takes this long; it turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for the future, but not for ever.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

/// A door at which something stops until the test lets it through.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<Signals>);

struct Signals {
    reached: Semaphore,
    open: Semaphore,
    waiting: AtomicUsize,
}

struct Standing<'d>(&'d Door);

impl<'d> Standing<'d> {
    fn at(door: &'d Door) -> Self {
        door.0.waiting.fetch_add(1, Ordering::SeqCst);
        Self(door)
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Default for Signals {
    fn default() -> Self {
        Self { reached: Semaphore::new(0), open: Semaphore::new(0), waiting: AtomicUsize::new(0) }
    }
}

impl Door {
    /// Called by what is to stop.
    pub(crate) async fn pass(&self) {
        let _standing = Standing::at(self);
        self.0.reached.add_permits(1);
        self.0.open.acquire().await.unwrap().forget();
    }

    /// How many stand at the door; who gives up does no more.
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::SeqCst)
    }

    /// Waits until somebody stands at the door.
    pub(crate) async fn reached(&self) {
        within("somebody reaches the door", self.0.reached.acquire()).await.unwrap().forget();
    }

    /// Lets one through.
    pub(crate) fn open(&self) {
        self.0.open.add_permits(1);
    }

    /// Lets everybody through from now on.
    pub(crate) fn open_for_good(&self) {
        self.0.open.add_permits(100_000);
    }
}

/// Small bounds, so that everything happens soon.
pub(crate) fn limits() -> Limits {
    Limits {
        pages_per_segment: 4,
        segments_ahead: 4,
        chunk_records: 20,
        part_records: 8,
        workers: 2,
        lease: Duration::from_secs(5),
        poll: Duration::from_millis(10),
        token_grace: Duration::from_millis(30),
        ..Limits::default()
    }
}

/// The kind under test: sources by the job's params, one sink.
pub(crate) struct TestKind {
    pub(crate) sources: Mutex<HashMap<String, Arc<Script>>>,
    pub(crate) sink: Mutex<Arc<TestSink>>,
    pub(crate) has_token: Mutex<bool>,
    pub(crate) observed: Mutex<Vec<(JobId, JobEvent)>>,
}

#[async_trait]
impl Kind for TestKind {
    fn name(&self) -> &'static str {
        "test"
    }

    async fn source(&self, job: &Job) -> Result<Option<Arc<dyn Source>>, SourceError> {
        if !*self.has_token.lock() {
            return Ok(None);
        }
        let source = self.sources.lock().get(&job.params).cloned();
        Ok(Some(source.expect("the test made a source for the job's params")))
    }

    async fn sink(&self, _job: &Job) -> Result<Arc<dyn Sink>, SinkError> {
        Ok(self.sink.lock().clone())
    }

    fn observe(&self, job: &Job, event: &JobEvent) {
        self.observed.lock().push((job.id, event.clone()));
    }
}

/// A database with the engine's tables, a source and a sink.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) database: Database,
    pub(crate) store: Store,
    pub(crate) kind: Arc<TestKind>,
    pub(crate) limits: Limits,
}

impl Bench {
    /// With a sink that takes chunks one at a time.
    pub(crate) async fn serial(database: Database, script: Script) -> Self {
        Self::with(database, script, TestSink::serial()).await
    }

    /// With a sink whose chunks run side by side.
    pub(crate) async fn parallel(database: Database, script: Script) -> Self {
        Self::with(database, script, TestSink::parallel()).await
    }

    pub(crate) async fn with(database: Database, script: Script, sink: TestSink) -> Self {
        sink::create_table(&database).await;
        Self::over(database, script, sink)
    }

    /// Over a database that has the sink's table already: another process.
    pub(crate) fn over(database: Database, script: Script, sink: TestSink) -> Self {
        let kind = TestKind {
            sources: Mutex::new(HashMap::from([("a".to_owned(), Arc::new(script))])),
            sink: Mutex::new(Arc::new(sink)),
            has_token: Mutex::new(true),
            observed: Mutex::default(),
        };
        Self { store: Store::new(database.clone()), database, kind: Arc::new(kind), limits: limits() }
    }

    /// The same kind of job in another process: pools of its own.
    pub(crate) async fn another_process(&self) -> Self {
        let database = Database::open(self.database.address()).await.unwrap();
        Self { store: Store::new(database.clone()), database, ..self.clone() }
    }

    pub(crate) fn limit(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn source(&self) -> Arc<Script> {
        self.kind.sources.lock()["a"].clone()
    }

    pub(crate) fn sink(&self) -> Arc<TestSink> {
        self.kind.sink.lock().clone()
    }

    /// Makes a job over the source `a`.
    pub(crate) async fn job(&self) -> JobId {
        self.job_of("a", "lane", Mode::Stream).await
    }

    pub(crate) async fn job_of(&self, params: &str, lane: &str, mode: Mode) -> JobId {
        let id = JobId(Id::new());
        let new = NewJob {
            kind: "test".into(),
            lane: lane.into(),
            mode,
            params: params.into(),
            request_id: Some("request-1".into()),
        };
        let mut tx = self.database.begin().await.unwrap();
        jobs::insert(tx.conn(), id, &new).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    pub(crate) fn runner(&self) -> Runner {
        Runner::new(self.store.clone(), vec![self.kind.clone()], self.limits.clone(), Metrics::default())
    }

    /// Starts a runner, as a process would.
    pub(crate) fn start(&self) -> Going {
        Going::start(self.runner())
    }

    /// Runs a job until it rests.
    pub(crate) async fn rest(&self, id: JobId) -> Job {
        let going = self.start();
        let job = going.rest_of(id).await;
        going.stop().await;
        job
    }

    /// Makes a job and runs it until it rests.
    pub(crate) async fn run(&self) -> Job {
        let id = self.job().await;
        self.rest(id).await
    }

    pub(crate) async fn resume(&self, id: JobId) {
        assert!(self.store.move_job(id, Status::Queued, None, None).await.unwrap(), "the job can be resumed");
    }

    pub(crate) async fn partitions(&self, id: JobId) -> Vec<engine::store::partitions::State> {
        let mut reader = self.database.read().await.unwrap();
        engine::store::partitions::list(reader.conn(), id).await.unwrap()
    }

    pub(crate) async fn job_row(&self, id: JobId) -> Job {
        self.store.job(id).await.unwrap().expect("the job exists")
    }

    /// The runs that were told: (started, completed).
    pub(crate) fn runs(&self) -> (Vec<i32>, Vec<i32>) {
        let (mut started, mut completed) = (Vec::new(), Vec::new());
        for (_, event) in self.kind.observed.lock().iter() {
            match event {
                JobEvent::RunStarted { run } => started.push(*run),
                JobEvent::RunCompleted { run, .. } => completed.push(*run),
                JobEvent::Moved { .. } => {}
            }
        }
        (started, completed)
    }

    /// Every record has one outcome, in the job, in each segment, and in the manifest; nothing is left staged.
    pub(crate) async fn assert_accounted(&self, id: JobId) {
        let job = self.job_row(id).await;
        assert_eq!(job.status, Status::Completed, "{:?}", job.reason);
        assert_eq!(job.fetched, job.counts.records(), "of the job");
        let mut reader = self.database.read().await.unwrap();
        let segments = history::segments(reader.conn(), id).await.unwrap();
        let mut fetched = 0;
        for line in &segments {
            let outcomes = line.imported
                + line.updated
                + line.unchanged
                + line.skipped
                + line.filtered
                + line.duplicate_in_source
                + line.failed;
            assert_eq!(i64::from(line.records), outcomes, "of segment {}/{}", line.part, line.segment);
            assert_eq!(line.status, "cleaned");
            assert_eq!(line.cleaned, line.records, "cleaned of segment {}/{}", line.part, line.segment);
            assert!(line.closed_at.is_some() && line.cleaned_at.is_some());
            fetched += i64::from(line.records);
        }
        assert_eq!(fetched, job.fetched, "over the segments");
        let job_id = id.0.get();
        let staged = match self.database.kind() {
            db::Kind::Postgres => {
                format!("SELECT COUNT(*) FROM crossdock.staged_pages WHERE job_id = {job_id}")
            }
            db::Kind::Sqlite => format!(
                "SELECT COUNT(*) FROM staged_pages r JOIN segments s ON s.stage = r.place / 16777216
                WHERE s.job_id = {job_id}"
            ),
        };
        let pages = format!("SELECT COUNT(*) FROM crossdock.pages WHERE job_id = {job_id}");
        for left in [staged, pages] {
            assert_eq!(sql::count(&self.database, &left).await, 0, "left of a completed job: {left}");
        }
        let mut ordinals: BTreeMap<(i32, i32), Vec<i32>> = BTreeMap::new();
        let mut failed = 0;
        for block in history::blocks(reader.conn(), id, (-1, -1, -1), 1_000_000).await.unwrap() {
            for entry in engine::manifest::unpack(&block.block).unwrap() {
                ordinals.entry((block.part, block.segment)).or_default().push(entry.ordinal);
                failed += i64::from(entry.outcome == engine::Outcome::Failed);
            }
        }
        for line in &segments {
            let found = ordinals.remove(&(line.part, line.segment)).unwrap_or_default();
            let wanted: Vec<i32> = (0..line.records).collect();
            assert_eq!(found, wanted, "the manifest of segment {}/{}", line.part, line.segment);
        }
        assert!(ordinals.is_empty(), "the manifest speaks of unknown segments");
        assert_eq!(failed, job.counts.failed, "failed in the manifest");
        let quarantined = history::quarantined(reader.conn(), id, (-1, -1, -1), 1_000_000).await.unwrap();
        assert_eq!(quarantined.len() as i64, job.counts.failed, "in quarantine");
    }
}

/// A runner at work.
pub(crate) struct Going {
    pub(crate) runner: Runner,
    stop: CancellationToken,
    task: JoinHandle<()>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    events: Mutex<Vec<Event>>,
    more: Notify,
}

impl Going {
    pub(crate) fn start(runner: Runner) -> Self {
        let stop = CancellationToken::new();
        let mut events = runner.events();
        let seen = Arc::new(Seen::default());
        let collector = seen.clone();
        tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                collector.events.lock().push(event);
                collector.more.notify_waiters();
            }
        });
        let task = tokio::spawn({
            let (runner, stop) = (runner.clone(), stop.clone());
            async move { runner.run(stop).await }
        });
        Self { runner, stop, task, seen }
    }

    /// Waits until the events so far satisfy the test.
    pub(crate) async fn until(&self, what: &str, enough: impl Fn(&[Event]) -> bool) {
        let wait = async {
            loop {
                let more = self.seen.more.notified();
                tokio::pin!(more);
                more.as_mut().enable();
                if enough(&self.seen.events.lock()) {
                    return;
                }
                more.await;
            }
        };
        within(what, wait).await;
    }

    pub(crate) async fn moved(&self, id: JobId, to: Status) {
        self.until(&format!("the job moves to {to}"), |events| {
            events
                .iter()
                .any(|event| matches!(event, Event::Moved { job, to: now } if *job == id && *now == to))
        })
        .await;
    }

    pub(crate) async fn settled(&self, chunks: usize) {
        self.until(&format!("{chunks} chunks are settled"), |events| {
            events.iter().filter(|event| matches!(event, Event::Settled { .. })).count() >= chunks
        })
        .await;
    }

    pub(crate) async fn fetched(&self, pages: usize) {
        self.until(&format!("{pages} pages are staged"), |events| {
            events.iter().filter(|event| matches!(event, Event::Fetched { .. })).count() >= pages
        })
        .await;
    }

    pub(crate) async fn rest_of(&self, id: JobId) -> Job {
        within("the job rests", self.runner.rest_of(id)).await.unwrap().expect("the job exists")
    }

    /// Stops at a safe point, as a process asked to end does.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within("the runner stops", self.task).await.unwrap();
    }
}

/// The database's clock moved on by this much, for times that the database judges.
pub(crate) async fn database_now(database: &Database) -> Timestamp {
    let mut reader = database.read().await.unwrap();
    db::now(reader.conn()).await.unwrap()
}
