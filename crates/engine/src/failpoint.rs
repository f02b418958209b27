//! Named points on both sides of every durable step, at which a crash can be made to happen.
//!
//! A point costs one atomic load. It is armed by the environment, for crash tests of the real binary:
//!
//! - `CROSSDOCK_FAILPOINT=NAME:N` aborts the process at the N-th time the point is passed;
//! - `CROSSDOCK_FAILPOINT=NAME:N:freeze` stops it there (SIGSTOP), until somebody wakes it (SIGCONT);
//! - `CROSSDOCK_FAILPOINT_LOG=FILE` appends each point's name as it is passed, so that a run can count them.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// Every point, so that a crash run can visit all and complain about one that is never passed. Those of `certify` are passed
/// by kinds that keep a certificate.
pub const POINTS: &[&str] = &[
    "lease.before_commit",
    "lease.after_commit",
    "page.before_commit",
    "page.after_commit",
    "segment.closed",
    "attempt.before_commit",
    "attempt.after_commit",
    "chunk.before_write",
    "chunk.after_write",
    "chunk.before_commit",
    "chunk.after_commit",
    "clean.before_commit",
    "clean.after_commit",
    "run.boundary",
    "state.before_commit",
    "state.after_commit",
    "certify.before_commit",
    "certify.after_commit",
    "complete.before_commit",
    "complete.after_commit",
];

/// A stop reaches all threads of a process within this time.
const FREEZING: Duration = Duration::from_millis(50);

struct Plan {
    armed: Option<Armed>,
    log: Option<std::sync::Mutex<std::fs::File>>,
    hits: AtomicU64,
}

struct Armed {
    name: String,
    count: u64,
    freeze: bool,
}

impl Armed {
    fn read(text: &str) -> Option<Self> {
        let (place, freeze) = match text.strip_suffix(":freeze") {
            Some(place) => (place, true),
            None => (text, false),
        };
        let (name, count) = place.rsplit_once(':')?;
        Some(Self { name: name.to_owned(), count: count.parse().ok()?, freeze })
    }
}

static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

/// Passes the point `name`.
pub fn pass(name: &'static str) {
    debug_assert!(POINTS.contains(&name), "{name} is missing in POINTS");
    if let Some(plan) = PLAN.get_or_init(from_environment) {
        plan.pass(name);
    }
}

fn from_environment() -> Option<Plan> {
    let armed = std::env::var("CROSSDOCK_FAILPOINT").ok().and_then(|text| Armed::read(&text));
    let log = std::env::var_os("CROSSDOCK_FAILPOINT_LOG")
        .and_then(|path| std::fs::OpenOptions::new().create(true).append(true).open(path).ok())
        .map(std::sync::Mutex::new);
    (armed.is_some() || log.is_some()).then(|| Plan { armed, log, hits: AtomicU64::new(0) })
}

impl Plan {
    fn pass(&self, name: &str) {
        if let Some(log) = &self.log
            && let Ok(mut file) = log.lock()
        {
            // A crash run that cannot write its log finds points missing and says so.
            let _ = writeln!(file, "{name}");
        }
        if let Some(armed) = &self.armed
            && armed.name == name
            && self.hits.fetch_add(1, Ordering::Relaxed) + 1 == armed.count
        {
            if !armed.freeze || kill_process(getpid(), Signal::STOP).is_err() {
                std::process::abort();
            }
            // This thread may be told last; it must not go on before.
            std::thread::sleep(FREEZING);
        }
    }
}
