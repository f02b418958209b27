//! What the engine counts and times, for Prometheus.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The engine's metrics; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    pages: Counter,
    records_fetched: Counter,
    fetch_seconds: Histogram,
    fetch_retries: Counter,
    chunks: Counter,
    records_settled: Counter,
    process_seconds: Histogram,
    chunk_retries: Counter,
    deadlocks: Counter,
    staged_bytes: Gauge,
    stuck_jobs: Counter,
    oldest_snapshot: Gauge,
    fenced: Counter,
}

impl Metrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        let metrics = Self {
            pages: Counter::default(),
            records_fetched: Counter::default(),
            fetch_seconds: seconds(),
            fetch_retries: Counter::default(),
            chunks: Counter::default(),
            records_settled: Counter::default(),
            process_seconds: seconds(),
            chunk_retries: Counter::default(),
            deadlocks: Counter::default(),
            staged_bytes: Gauge::default(),
            stuck_jobs: Counter::default(),
            oldest_snapshot: Gauge::default(),
            fenced: Counter::default(),
        };
        let registry = registry.sub_registry_with_prefix("crossdock");
        registry.register("pages", "Pages committed to staging", metrics.pages.clone());
        registry.register("records_fetched", "Records committed to staging", metrics.records_fetched.clone());
        registry.register("fetch_seconds", "Time to fetch a page", metrics.fetch_seconds.clone());
        registry.register("fetch_retries", "Requests that were repeated", metrics.fetch_retries.clone());
        registry.register("chunks", "Chunks settled", metrics.chunks.clone());
        registry.register(
            "records_settled",
            "Records whose outcome is committed",
            metrics.records_settled.clone(),
        );
        registry.register("process_seconds", "Time to process a chunk", metrics.process_seconds.clone());
        registry.register(
            "chunk_retries",
            "Chunk transactions that were run again",
            metrics.chunk_retries.clone(),
        );
        registry.register(
            "deadlocks",
            "Chunk transactions that the server ended as deadlocked",
            metrics.deadlocks.clone(),
        );
        registry.register(
            "staged_bytes",
            "Bytes staged and not cleaned, of jobs this process fetches",
            metrics.staged_bytes.clone(),
        );
        registry.register(
            "oldest_snapshot_seconds",
            "Age of the database's oldest snapshot at the latest sweep",
            metrics.oldest_snapshot.clone(),
        );
        registry.register("stuck_jobs", "Jobs failed by the stuck sweep", metrics.stuck_jobs.clone());
        registry.register(
            "fenced_commits",
            "Page commits refused because another fetcher took over",
            metrics.fenced.clone(),
        );
        metrics
    }

    pub(crate) fn page(&self, pages: usize, records: usize, retries: i64, took: Duration) {
        self.pages.inc_by(pages as u64);
        self.records_fetched.inc_by(records as u64);
        self.fetch_retries.inc_by(retries.unsigned_abs());
        self.fetch_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn chunk(&self, records: i64, took: Duration) {
        self.chunks.inc();
        self.records_settled.inc_by(records.unsigned_abs());
        self.process_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn retry(&self, deadlock: bool) {
        self.chunk_retries.inc();
        if deadlock {
            self.deadlocks.inc();
        }
    }

    pub(crate) fn backlog(&self, bytes: i64) {
        self.staged_bytes.set(bytes);
    }

    pub(crate) fn oldest_snapshot(&self, age: Duration) {
        self.oldest_snapshot.set(i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
    }

    pub(crate) fn stuck(&self, jobs: usize) {
        self.stuck_jobs.inc_by(jobs as u64);
    }

    pub(crate) fn fenced(&self) {
        self.fenced.inc();
    }
}

impl Default for Metrics {
    /// Metrics that nobody reads, for tests and one-shot commands.
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}
