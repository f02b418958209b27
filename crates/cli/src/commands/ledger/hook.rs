//! The command that is run when a job has come to its end.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// How long it may take.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Code(i32),
    /// By a signal.
    Killed,
    TimedOut,
    NotStarted(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Killed => f.write_str("was ended by a signal"),
            Self::TimedOut => write!(f, "was ended: it took longer than {} s", TIME_LIMIT.as_secs()),
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
        }
    }
}

/// Runs the command with `sh -c`, the summary on its standard input. It has the environment of this process and the given
/// variables. What it prints goes to standard error: standard output is the run's own. At the time limit it is ended with
/// everything that it started.
pub(super) async fn run(
    command: &str,
    variables: &[(&str, &str)],
    summary: &str,
    time_limit: Duration,
) -> Ended {
    let started = Command::new("sh")
        .arg("-c")
        .arg(command)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(std::io::stderr())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return Ended::NotStarted(error.to_string()),
    };
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    match tokio::time::timeout(time_limit, told(&mut child, summary)).await {
        Ok(ended) => ended,
        Err(_) => {
            if let Some(group) = group {
                // It may have ended just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait().await;
            Ended::TimedOut
        }
    }
}

async fn told(child: &mut Child, summary: &str) -> Ended {
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read is told nothing.
        let _ = input.write_all(summary.as_bytes()).await;
        let _ = input.shutdown().await;
    }
    match child.wait().await {
        Ok(status) => status.code().map_or(Ended::Killed, Ended::Code),
        Err(error) => Ended::NotStarted(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn it_gets_the_summary_and_the_variables_and_its_exit_code_is_told() {
        let folder = std::env::temp_dir().join(format!("crossdock-hook-{}", db::Id::new()));
        std::fs::create_dir(&folder).unwrap();
        let command = format!(
            "cat > {0}/in; echo \"$CROSSDOCK_JOB $CROSSDOCK_STATUS\" > {0}/env; exit 7",
            folder.display()
        );
        let variables = [("CROSSDOCK_JOB", "0hz"), ("CROSSDOCK_STATUS", "completed")];
        assert_eq!(run(&command, &variables, "{\"a\":1}\n", LONG).await, Ended::Code(7));
        assert_eq!(std::fs::read_to_string(folder.join("in")).unwrap(), "{\"a\":1}\n");
        assert_eq!(std::fs::read_to_string(folder.join("env")).unwrap(), "0hz completed\n");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_command_that_reads_nothing_ends_all_the_same() {
        let large = "x".repeat(1 << 20);
        assert_eq!(run("true", &[], &large, LONG).await, Ended::Code(0));
        assert_eq!(run("kill -9 $$", &[], &large, LONG).await, Ended::Killed);
    }

    #[tokio::test]
    async fn at_the_time_limit_it_is_ended_with_what_it_started() {
        let folder = std::env::temp_dir().join(format!("crossdock-hook-{}", db::Id::new()));
        std::fs::create_dir(&folder).unwrap();
        // The group is gone when the last writer of the pipe is: reading it to its end waits for that, and for no time.
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reading = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        let command = format!("exec > {}; echo begun; sleep 600 & wait", pipe.display());
        assert_eq!(run(&command, &[], "", Duration::from_secs(5)).await, Ended::TimedOut);
        assert_eq!(reading.join().unwrap(), b"begun\n");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
