//! What a process that holds tokens does not do.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Switches core dumps off for this process and its children.
pub(crate) fn no_core_dumps() {
    let hard = getrlimit(Resource::Core).maximum;
    let none = Rlimit { current: Some(0), maximum: hard.map(|_| 0).or(Some(0)) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps cannot be switched off; a crash could write tokens to disk");
    }
}
