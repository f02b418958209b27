//! Exit codes, and how errors become them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: all went well; for a job, every record arrived or is accounted for without failure.
    Clean,
    /// 1: it failed.
    Failed,
    /// 2: what was typed is not understood, or cannot be done.
    Usage,
    /// 3: the job completed, and some records failed.
    Partial,
    /// 4: the job needs the source's token to go on.
    AwaitingToken,
    /// 5: a run of a ledger came to a planned halt before its end; the same command goes on.
    Unfinished,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Partial => 3,
            Exit::AwaitingToken => 4,
            Exit::Unfinished => 5,
        })
    }
}

/// An error of the person who typed, not of the program: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Shorthand for a usage error.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// The exit code for an error.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    if error.chain().any(|cause| cause.is::<UsageError>()) { Exit::Usage } else { Exit::Failed }
}
