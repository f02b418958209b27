//! The processes that work on one job at the same time.

use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::Instant;

use super::case::{PROCESSES_MAX, Role, Victim};
use super::cast::{Cast, Player};
use crate::process::{Ending, PROCESS_LIMIT};

/// Who is there, for each number of processes.
const ROLES: [Role; PROCESSES_MAX] = [Role::Fetcher, Role::Worker, Role::Worker, Role::Joiner];

pub(super) struct Company<'c> {
    cast: &'c Cast<'c>,
    /// The process that ends with the job.
    pub(super) main: Player,
    pub(super) others: Vec<Player>,
    /// Others may abort, at their end too.
    armed: bool,
    began: Instant,
    /// A job that takes longer hangs.
    pub(super) limit: Duration,
}

impl<'c> Company<'c> {
    /// Starts so many processes, those that are meant armed with a fail point.
    pub(super) fn raise(
        cast: &'c Cast<'c>,
        processes: usize,
        armed: Option<(Victim, &str)>,
    ) -> anyhow::Result<Self> {
        let mut one = false;
        let mut failpoint = |role| {
            let (victim, failpoint) = armed.filter(|(victim, _)| victim.is(role))?;
            // Of several workers one is enough.
            (victim == Victim::Any || !std::mem::replace(&mut one, true)).then_some(failpoint)
        };
        let mut others = Vec::new();
        for role in &ROLES[1..processes] {
            others.push(cast.start(*role, failpoint(*role))?);
        }
        let main = cast.start(Role::Fetcher, failpoint(Role::Fetcher))?;
        let (began, limit) = (Instant::now(), PROCESS_LIMIT);
        Ok(Self { cast, main, others, armed: armed.is_some(), began, limit })
    }

    /// An error once the job hangs.
    pub(super) fn may_go_on(&self) -> anyhow::Result<()> {
        if self.began.elapsed() > self.limit {
            bail!("the job hangs: no end within {:?}", self.limit);
        }
        Ok(())
    }

    /// Waits for the end of the job; one that does not end as it should is an error.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        let ending = self.main.running.end().await?;
        self.expect_done(ending)
    }

    pub(super) fn expect_done(&self, ending: Ending) -> anyhow::Result<()> {
        if !self.cast.is_done(ending) {
            bail!("`ledger run` ended with {ending:?}");
        }
        Ok(())
    }

    /// Whether the job ends within this time.
    pub(super) async fn ends_within(&mut self, time: Duration) -> anyhow::Result<bool> {
        self.may_go_on()?;
        match self.main.running.ends_within(time).await? {
            Some(ending) => self.expect_done(ending).map(|()| true),
            None => Ok(false),
        }
    }

    /// A process of this role.
    pub(super) fn player(&mut self, role: Role) -> anyhow::Result<&mut Player> {
        if role == Role::Fetcher {
            return Ok(&mut self.main);
        }
        let player = self.others.iter_mut().find(|player| player.role == role);
        player.with_context(|| format!("there is no {role}"))
    }

    /// SIGKILL, and another in its place. Tells whether the signal ended it.
    pub(super) async fn kill(&mut self, role: Role) -> anyhow::Result<bool> {
        let cast = self.cast;
        let player = self.player(role)?;
        let killed = player.running.kill().await?;
        if killed {
            *player = cast.start(role, None)?;
            // The next one of this role is another.
            let last = self.others.len().saturating_sub(1);
            if let Some(at) = self.others.iter().position(|player| player.role == role) {
                self.others.swap(at, last);
            }
        }
        Ok(killed)
    }

    /// SIGTERM to the others, which must end well.
    pub(super) async fn dismiss(self) -> anyhow::Result<()> {
        for mut player in self.others {
            let ending = match player.running.ended()? {
                Some(ending) if !self.armed => bail!("a {} ended by itself with {ending:?}", player.role),
                Some(ending) => ending,
                None => player.running.terminate().await?,
            };
            if !(ending == Ending::Done || self.armed && ending == Ending::Aborted) {
                bail!("asked to stop, a {} ended with {ending:?}", player.role);
            }
        }
        Ok(())
    }
}
