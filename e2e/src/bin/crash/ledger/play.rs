//! Cases of migrations.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;

use super::bank;
use super::case::{At, Case, Role, Victim};
use super::cast::Cast;
use super::company::Company;
use super::core::Core;
use super::judge::judge;
use super::plan::ANYBODYS;
use crate::case::Cut;
use crate::ground::Ground;
use crate::process::{Ending, LOOK_EVERY};
use crate::proxy::Proxy;
use crate::run::{Attempt, Disturbed, Landed, Replaced, Report, Verdict, World, earlier};

/// The signal that asks a process to stop (POSIX).
const SIGTERM: i32 = 15;
/// Processes of a case that does not say how many.
const PROCESSES: usize = 3;
/// Starts that `ledger run` may need after its database or its connection went away.
const STARTS_MAX: usize = 3;
/// After so much silence in a transaction the server ends it, in cases of frozen processes. In the others it is the
/// product's minute, which nothing may wait for.
const IDLE_SECONDS: u64 = 2;
/// How much longer than it must a busy machine may take to replace a killed process; far less than the minute after which
/// the server would free what a frozen one holds.
const BUSY: Duration = Duration::from_secs(20);

/// Plays a case.
pub(crate) async fn play(world: &World, ground: &Ground<'_>, case: &Case) -> anyhow::Result<Attempt> {
    let prepared = world.ledger.prepared(world).await?;
    let export = world.ledger.export(case);
    let core = Core::start(&world.binary, export).await?;
    let proxy = match case {
        Case::Cut(cut) => Some(Proxy::start(world.server.address()?, Some(*cut)).await?),
        _ => None,
    };
    let mut direct = ground.url(None)?;
    if matches!(case, Case::Freeze { .. }) {
        direct.push_str(&format!("?idle_in_transaction_seconds={IDLE_SECONDS}"));
    }
    let partial = prepared.truth.bad > 0;
    let mut cast = Cast::new(&world.binary, &ground.folder, direct, &core, export, partial)?;
    if let Some(proxy) = &proxy {
        cast.url = ground.url(Some(proxy.address()))?;
    }
    // The harness's own connections do not know the product's parameters.
    cast.direct_for_us = ground.url(None)?;
    let mut stage =
        Stage { world, cast: &cast, share: 0.0, replaced: Replaced::default(), wrong: Vec::new() };
    let landed = match stage.disturb(case, proxy.as_ref()).await? {
        Disturbed::Landed(landed) => landed,
        Disturbed::Missed(earlier) => return Ok(Attempt::Missed(earlier)),
    };
    let Stage { share, replaced, wrong, .. } = stage;
    let mut verdict: Verdict = judge(&cast, &prepared.truth, landed.interruptions).await?;
    verdict.complaints.extend(wrong);
    Ok(Attempt::Judged(Box::new(Report {
        case: crate::case::Case::Ledger(case.clone()),
        verdict,
        interruptions: landed.interruptions,
        survived: landed.survived,
        share,
        replaced,
        kept: None,
    })))
}

/// Where a case is played, and what was seen on the way.
struct Stage<'s> {
    world: &'s World,
    cast: &'s Cast<'s>,
    share: f64,
    replaced: Replaced,
    wrong: Vec<String>,
}

fn landed(interruptions: usize, survived: bool) -> Disturbed {
    Disturbed::Landed(Landed { interruptions, survived })
}

fn missed(case: Case) -> Disturbed {
    Disturbed::Missed(crate::case::Case::Ledger(case))
}

impl Stage<'_> {
    async fn disturb(&mut self, case: &Case, proxy: Option<&Proxy>) -> anyhow::Result<Disturbed> {
        match case {
            Case::Abort { victim, point, hit } => self.abort(*victim, point, *hit).await,
            Case::Kill { processes, kills } => self.kill(*processes, kills).await,
            Case::Freeze { role, at } => self.freeze(*role, at).await,
            Case::Stop { after } => self.stop(*after).await,
            Case::Cut(cut) => match proxy {
                Some(proxy) => self.cut(*cut, proxy).await,
                None => bail!("a cut needs its proxy"),
            },
        }
    }

    /// How much of the export was asked for by now.
    async fn note_share(&mut self) -> anyhow::Result<()> {
        let asked = self.cast.core.told().await?.pages();
        self.share = asked as f64 / self.cast.export.pages().max(1) as f64;
        Ok(())
    }

    async fn abort(&mut self, victim: Victim, point: &str, hit: u64) -> anyhow::Result<Disturbed> {
        let failpoint = format!("{point}:{hit}");
        let mut company = Company::raise(self.cast, PROCESSES, Some((victim, &failpoint)))?;
        let mut aborts = 0;
        let mut first = None;
        loop {
            let mut gone = Vec::new();
            for (at, player) in company.others.iter_mut().enumerate() {
                match player.running.ended()? {
                    None => {}
                    Some(Ending::Aborted) => gone.push(at),
                    Some(ending) => bail!("a {} ended with {ending:?}", player.role),
                }
            }
            aborts += gone.len();
            // Their chunks are the others' now; nobody takes their place.
            for at in gone.into_iter().rev() {
                company.others.remove(at);
            }
            match company.main.running.ended()? {
                None => {}
                Some(Ending::Aborted) => {
                    aborts += 1;
                    company.main = self.cast.start(Role::Fetcher, None)?;
                }
                Some(ending) => {
                    company.expect_done(ending)?;
                    break;
                }
            }
            if aborts > 0 && first.is_none() {
                first = Some(bank::clock(&self.cast.direct_for_us).await?);
                self.note_share().await?;
            }
            company.may_go_on()?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        company.dismiss().await?;
        let Some(moment) = first else {
            // Who does what depends on time: this one passed the point less often than the one that was counted.
            let roles = Role::ALL.into_iter().filter(|role| victim.is(*role));
            let passed = roles.map(|role| self.cast.passed(role, point)).max().unwrap_or_default();
            if passed == 0 && victim != Victim::One(Role::Worker) {
                bail!("the migration never passes {point}");
            }
            return Ok(missed(Case::Abort {
                victim,
                point: point.to_owned(),
                hit: passed.min(hit - 1).max(1),
            }));
        };
        let chunk = point.starts_with("chunk.") && victim == Victim::One(Role::Worker);
        let fetching = !point.starts_with("complete.") && victim == Victim::One(Role::Fetcher);
        self.note_replaced(moment, chunk, fetching).await?;
        Ok(landed(aborts, victim == Victim::One(Role::Worker)))
    }

    /// How long the others waited for what a killed process had held.
    async fn note_replaced(&mut self, moment: i64, chunk: bool, partition: bool) -> anyhow::Result<()> {
        let (settled, taken) = bank::taken_over(&self.cast.direct_for_us, moment).await?;
        let since = |time: Option<i64>| {
            time.map(|time| Duration::from_micros(u64::try_from(time - moment).unwrap_or_default()))
        };
        let lease = Duration::from_secs(self.cast.export.lease_seconds);
        if let Some(waited) = since(settled).filter(|_| chunk) {
            self.replaced.chunk = Some(waited);
            if waited > BUSY {
                self.wrong.push(format!("the chunk of a killed worker was settled after {waited:.1?}"));
            }
        }
        if let Some(waited) = since(taken).filter(|_| partition) {
            self.replaced.partition = Some(waited);
            if waited > lease + BUSY {
                self.wrong.push(format!("the partition of a killed fetcher was taken after {waited:.1?}"));
            }
        }
        Ok(())
    }

    async fn kill(&mut self, processes: usize, kills: &[(Role, Duration)]) -> anyhow::Result<Disturbed> {
        let mut company = Company::raise(self.cast, processes, None)?;
        let began = Instant::now();
        let mut landed_kills = 0;
        let mut last_fetcher = None;
        for (role, moment) in kills {
            if company.ends_within(moment.saturating_sub(began.elapsed())).await?
                || !company.kill(*role).await?
            {
                break;
            }
            landed_kills += 1;
            if *role == Role::Fetcher {
                last_fetcher = Some(bank::clock(&self.cast.direct_for_us).await?);
            }
            if landed_kills == 1 {
                self.note_share().await?;
            }
        }
        if landed_kills == 0 {
            company.dismiss().await?;
            let kills = kills.iter().map(|(role, moment)| (*role, earlier(*moment))).collect();
            return Ok(missed(Case::Kill { processes, kills }));
        }
        company.end().await?;
        company.dismiss().await?;
        if let Some(moment) = last_fetcher.filter(|_| processes < super::case::PROCESSES_MAX) {
            self.note_replaced(moment, false, true).await?;
        }
        Ok(landed(landed_kills, false))
    }

    async fn freeze(&mut self, role: Role, at: &At) -> anyhow::Result<Disturbed> {
        let failpoint = match at {
            At::Point(point, hit) => Some(format!("{point}:{hit}:freeze")),
            At::Moment(_) => None,
        };
        let armed = failpoint.as_deref().map(|failpoint| (Victim::One(role), failpoint));
        let mut company = Company::raise(self.cast, PROCESSES, armed)?;
        if !self.stands_still(&mut company, role, at).await? {
            company.dismiss().await?;
            return Ok(missed(Case::Freeze { role, at: self.sooner(role, at)? }));
        }
        self.note_share().await?;
        let substitute = self.cast.start(role, None)?;
        let mut frozen = std::mem::replace(company.player(role)?, substitute);
        // The others do not wait for it.
        company.end().await?;
        let before = bank::snapshot(&self.cast.direct_for_us).await?;
        frozen.running.wake()?;
        let ending = match role {
            Role::Fetcher => frozen.running.end().await?,
            Role::Worker | Role::Joiner => frozen.running.terminate().await?,
        };
        let ends_well = match role {
            Role::Fetcher => self.cast.is_done(ending),
            // It may have been frozen before it was ready for the signal.
            Role::Worker | Role::Joiner => matches!(ending, Ending::Done | Ending::Signal(SIGTERM)),
        };
        if !ends_well {
            self.wrong.push(format!("woken too late, the {role} ended with {ending:?}"));
        }
        let after = bank::snapshot(&self.cast.direct_for_us).await?;
        if before != after {
            self.wrong.push(format!("woken too late, the {role} wrote: {before}\n  became {after}"));
        }
        company.dismiss().await?;
        Ok(landed(1, false))
    }

    /// Waits until the process that is meant stands still. `false`: the job ended before.
    async fn stands_still(&self, company: &mut Company<'_>, role: Role, at: &At) -> anyhow::Result<bool> {
        if let At::Moment(moment) = at {
            if company.ends_within(*moment).await? {
                return Ok(false);
            }
            // Frozen before it made its job, it would make another one later, and rightly so.
            while bank::jobs(&self.cast.direct_for_us).await?.is_empty() {
                if company.ends_within(LOOK_EVERY).await? {
                    return Ok(false);
                }
            }
            let player = company.player(role)?;
            player.running.freeze()?;
            return player.running.stands_still().await;
        }
        loop {
            if company.player(role)?.running.stands_still_now() {
                return Ok(true);
            }
            if company.ends_within(LOOK_EVERY).await? {
                return Ok(false);
            }
        }
    }

    /// A place at which a process of this role may be frozen, after one that was not reached.
    fn sooner(&self, role: Role, at: &At) -> anyhow::Result<At> {
        match at {
            At::Moment(moment) => Ok(At::Moment(earlier(*moment))),
            At::Point(point, hit) => {
                let passed = self.cast.passed(role, point);
                let anybodys = ANYBODYS.iter().any(|start| point.starts_with(start));
                if passed == 0 && role == Role::Fetcher && !anybodys {
                    bail!("the fetcher never passes {point}");
                }
                Ok(At::Point(point.clone(), passed.min(*hit - 1).max(1)))
            }
        }
    }

    async fn stop(&mut self, after: Duration) -> anyhow::Result<Disturbed> {
        let mut company = Company::raise(self.cast, PROCESSES, None)?;
        if company.ends_within(after).await? {
            company.dismiss().await?;
            return Ok(missed(Case::Stop { after: earlier(after) }));
        }
        self.note_share().await?;
        self.world.server.stop_immediate().await?;
        self.world.server.restart().await?;
        // Processes that were only just connecting may have given up.
        let ending = company.main.running.end().await?;
        self.go_on(&mut company, ending).await
    }

    async fn cut(&mut self, cut: Cut, proxy: &Proxy) -> anyhow::Result<Disturbed> {
        let mut company = Company::raise(self.cast, PROCESSES, None)?;
        let ending = company.main.running.end().await?;
        if !proxy.has_cut() {
            company.expect_done(ending)?;
            company.dismiss().await?;
            return Ok(missed(Case::Cut(Cut { commit: proxy.commits().max(1), ..cut })));
        }
        self.go_on(&mut company, ending).await
    }

    /// Starts `ledger run` again until it is through, if it did not live through it.
    async fn go_on(&mut self, company: &mut Company<'_>, first: Ending) -> anyhow::Result<Disturbed> {
        let mut ending = first;
        for _ in 0..STARTS_MAX {
            if self.cast.is_done(ending) {
                return Ok(landed(1, self.cast.is_done(first)));
            }
            company.main = self.cast.start(Role::Fetcher, None)?;
            ending = company.main.running.end().await?;
        }
        company.expect_done(ending)?;
        Ok(landed(1, false))
    }
}
