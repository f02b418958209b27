//! Named points on both sides of every durable step, at which a crash can be made to happen.
//!
//! A point costs one atomic load. It is armed by the environment, for crash tests of the real binary:
//!
//! - `CROSSDOCK_FAILPOINT=NAME:N` aborts the process at the N-th time the point is passed;
//! - `CROSSDOCK_FAILPOINT_LOG=FILE` appends each point's name as it is passed, so that a run can count them.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every point, so that a crash run can visit all and complain about one that is never passed.
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
    "complete.before_commit",
    "complete.after_commit",
];

struct Plan {
    abort: Option<(String, u64)>,
    log: Option<std::sync::Mutex<std::fs::File>>,
    hits: AtomicU64,
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
    let abort = std::env::var("CROSSDOCK_FAILPOINT").ok().and_then(|text| {
        let (name, count) = text.rsplit_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    let log = std::env::var_os("CROSSDOCK_FAILPOINT_LOG")
        .and_then(|path| std::fs::OpenOptions::new().create(true).append(true).open(path).ok())
        .map(std::sync::Mutex::new);
    (abort.is_some() || log.is_some()).then(|| Plan { abort, log, hits: AtomicU64::new(0) })
}

impl Plan {
    fn pass(&self, name: &str) {
        if let Some(log) = &self.log
            && let Ok(mut file) = log.lock()
        {
            // A crash run that cannot write its log finds points missing and says so.
            let _ = writeln!(file, "{name}");
        }
        if let Some((armed, count)) = &self.abort
            && armed == name
            && self.hits.fetch_add(1, Ordering::Relaxed) + 1 == *count
        {
            std::process::abort();
        }
    }
}
