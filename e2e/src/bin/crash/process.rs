//! Processes of the real binary: started with nothing of the surroundings in them, killed, frozen, and waited for.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// The signal of an abort (POSIX).
const SIGABRT: i32 = 6;
/// A process that takes longer hangs.
pub(crate) const PROCESS_LIMIT: Duration = Duration::from_secs(600);
/// How often a process is looked at that nobody tells about.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Aborted,
    Code(i32),
    Signal(i32),
}

/// A process that was started.
pub(crate) struct Running {
    child: Child,
}

/// The binary, in this folder and on this database; what it says goes into the file `NAME.err` there.
pub(crate) fn command(binary: &Path, folder: &Path, url: &str, name: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(binary);
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("CROSSDOCK_") {
            command.env_remove(variable);
        }
    }
    let log = File::create(folder.join(format!("{name}.err")))?;
    command
        .current_dir(folder)
        .args(["--database", url])
        .stdin(Stdio::null())
        .stderr(Stdio::from(log))
        .kill_on_drop(true);
    Ok(command)
}

impl Running {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let program = command.as_std().get_program().to_owned();
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child })
    }

    /// Waits for the end.
    pub(crate) async fn end(&mut self) -> anyhow::Result<Ending> {
        match tokio::time::timeout(PROCESS_LIMIT, self.child.wait()).await {
            Ok(status) => Ok(ending(status?)),
            Err(_) => {
                self.child.kill().await?;
                bail!("the process hangs: no end within {PROCESS_LIMIT:?}")
            }
        }
    }

    /// Waits for the end for so long.
    pub(crate) async fn ends_within(&mut self, time: Duration) -> anyhow::Result<Option<Ending>> {
        match tokio::time::timeout(time, self.child.wait()).await {
            Ok(status) => Ok(Some(ending(status?))),
            Err(_) => Ok(None),
        }
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<Ending>> {
        Ok(self.child.try_wait()?.map(ending))
    }

    /// SIGKILL. Tells whether it ended the process.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<bool> {
        self.child.start_kill()?;
        Ok(self.child.wait().await?.signal().is_some())
    }

    /// SIGTERM, and the end.
    pub(crate) async fn terminate(&mut self) -> anyhow::Result<Ending> {
        self.signal(Signal::TERM)?;
        self.end().await
    }

    /// SIGSTOP: it stays where it is.
    pub(crate) fn freeze(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    pub(crate) fn wake(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        // A process that has ended and was waited for has no number any more.
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, signal)?;
        }
        Ok(())
    }

    fn status(&self, key: &str) -> Option<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        status.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned())
    }

    /// Whether it is frozen.
    pub(crate) fn stands_still_now(&self) -> bool {
        self.status("State:").is_some_and(|state| state.starts_with('T'))
    }

    /// Waits until it stands still. `false`: it has ended instead.
    pub(crate) async fn stands_still(&mut self) -> anyhow::Result<bool> {
        let deadline = Instant::now() + PROCESS_LIMIT;
        while Instant::now() < deadline {
            if self.ended()?.is_some() {
                return Ok(false);
            }
            if self.stands_still_now() {
                return Ok(true);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("the process neither freezes nor ends within {PROCESS_LIMIT:?}")
    }

    /// The most memory it has used, in bytes; nothing once it has ended.
    pub(crate) fn peak_rss_bytes(&self) -> u64 {
        self.bytes("VmHWM:")
    }

    /// The memory it uses now.
    pub(crate) fn rss_bytes(&self) -> u64 {
        self.bytes("VmRSS:")
    }

    fn bytes(&self, key: &str) -> u64 {
        let kibibytes = self.status(key).and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        kibibytes.unwrap_or_default() * 1024
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ending::Done,
        (Some(code), _) => Ending::Code(code),
        (None, Some(SIGABRT)) => Ending::Aborted,
        (None, signal) => Ending::Signal(signal.unwrap_or_default()),
    }
}
