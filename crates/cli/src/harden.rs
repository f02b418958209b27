//! What a process that holds tokens does not do, and when one that another started ends.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Switches core dumps off for this process.
///
/// The limit alone would not do: a core that is piped into a program (systemd-coredump) is not subject to it (core(5)).
/// A process that is not dumpable leaves no core anywhere, and nobody but root can attach to it.
pub(crate) fn no_core_dumps() {
    let hard = getrlimit(Resource::Core).maximum;
    let none = Rlimit { current: Some(0), maximum: hard.map(|_| 0).or(Some(0)) };
    let limited = setrlimit(Resource::Core, none);
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(hidden) {
        tracing::warn!(%error, "core dumps cannot be switched off; a crash could write tokens to disk");
    }
}

/// Names the process that started this one and that it must not outlive.
pub(crate) const PARENT_VARIABLE: &str = "CROSSDOCK_PARENT";

/// Ends this process with the one that started it, however that ends, if it was asked for (prctl(2), `PR_SET_PDEATHSIG`).
#[cfg(target_os = "linux")]
pub(crate) fn end_with_parent() {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let Some(parent) = std::env::var(PARENT_VARIABLE).ok().and_then(|pid| pid.parse::<i32>().ok()) else {
        return;
    };
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    // It may be gone already: then the signal was sent to nobody.
    let orphaned = getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent);
    if orphaned || asked.is_err() {
        std::process::exit(1);
    }
}

/// Elsewhere whoever starts a process ends it, as long as it can.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_with_parent() {}
