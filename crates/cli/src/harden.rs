//! What a process that holds tokens does not do.

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
