//! A million records from a slow source, with kills all along, beside an undisturbed migration of the same.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::Serialize;

use super::Prepared;
use super::bank::{self, JobRow};
use super::case::Role;
use super::cast::Cast;
use super::company::Company;
use super::core::{Core, Export};
use super::judge::judge;
use crate::case::Database;
use crate::ground::Ground;
use crate::server::Server;

const PROCESSES: usize = 3;
/// The disturbed migration may take so much longer, where the undisturbed one takes long enough for leases not to count.
const RATIO_MAX: f64 = 1.3;
const RATIO_SECONDS: f64 = 300.0;
/// Each process stays below.
const PEAK_MAX: u64 = 200_000_000;
/// A migration that takes longer hangs.
const MIGRATION_LIMIT: Duration = Duration::from_secs(60 * 60);
/// What counts as the end of a migration: the certificate is made within it.
const END: f64 = 0.1;
/// Undisturbed, a process uses in the last third of a migration at most so much more than in the first.
const GROWTH_MAX: u64 = 16 * 1024 * 1024;
/// Pages asked again for each kill.
const PAGES_AGAIN_MAX: u64 = 5;
/// How often the processes' memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) records: u64,
    pub(crate) kills: usize,
    pub(crate) latency_ms: u64,
    pub(crate) seed: u64,
}

/// What it came to.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    records: u64,
    undisturbed: Migration,
    disturbed: Migration,
    /// Of the second to the first.
    time_ratio: f64,
    same_proof: bool,
    lost: u64,
    doubled: u64,
    altered: u64,
    complaints: Vec<String>,
}

/// One of the two migrations.
#[derive(Debug, Default, Serialize)]
struct Migration {
    seconds: f64,
    kills: usize,
    pages_again: u64,
    /// The most that a process of the kind used.
    fetcher_peak_rss_bytes: u64,
    worker_peak_rss_bytes: u64,
    /// The most that any process used in each third of the migration, and at its end, with the certificate.
    rss_bytes_by_third: [u64; 3],
    rss_bytes_at_end: u64,
    source_hash: Option<String>,
    target_hash: Option<String>,
}

impl Figures {
    pub(crate) fn hold(&self) -> bool {
        self.complaints.is_empty() && (self.lost, self.doubled, self.altered) == (0, 0, 0) && self.same_proof
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes / 1_000_000;
        write!(
            f,
            "crash million: {} records, {} kills: {:.0} s, undisturbed {:.0} s, ratio {:.2}; {} pages asked again; at most \
             {} MB in a fetcher and {} MB in a worker; the proofs are {}: lost {}, doubled {}, altered {}",
            self.records,
            self.disturbed.kills,
            self.disturbed.seconds,
            self.undisturbed.seconds,
            self.time_ratio,
            self.disturbed.pages_again,
            megabytes(self.disturbed.fetcher_peak_rss_bytes.max(self.undisturbed.fetcher_peak_rss_bytes)),
            megabytes(self.disturbed.worker_peak_rss_bytes.max(self.undisturbed.worker_peak_rss_bytes)),
            if self.same_proof { "equal" } else { "NOT EQUAL" },
            self.lost,
            self.doubled,
            self.altered,
        )?;
        for complaint in &self.complaints {
            write!(f, "\n  {complaint}")?;
        }
        Ok(())
    }
}

/// Migrates twice.
pub(crate) async fn run(
    binary: &Path,
    server: &Server,
    folder: &Path,
    extent: Extent,
) -> anyhow::Result<Figures> {
    let export = Export {
        records: extent.records,
        seed: extent.seed,
        faults: "none",
        latency_ms: extent.latency_ms,
        partitions: 1,
        page_records: 1_000,
        segment_pages: 50,
        chunk_records: 5_000,
        lease_seconds: 2,
    };
    let prepared = Prepared::make(binary, server, export, folder).await?;
    let mut figures = Figures {
        records: extent.records,
        undisturbed: Migration::default(),
        disturbed: Migration::default(),
        time_ratio: 0.0,
        same_proof: false,
        lost: 0,
        doubled: 0,
        altered: 0,
        complaints: Vec::new(),
    };
    let mut chance = StdRng::seed_from_u64(extent.seed);
    let mut kills = Vec::new();
    for disturbed in [false, true] {
        let ground = Ground::make(Database::Postgres, folder, server, Some(&prepared.template)).await?;
        let core = Core::start(binary, export).await?;
        let cast = Cast::new(binary, &ground.folder, ground.url(None)?, &core, export, false)?;
        let (mut migration, expect) = migrate(&cast, &kills).await?;
        let verdict = judge(&cast, &prepared.truth, migration.kills).await?;
        let jobs: Vec<JobRow> = bank::jobs(&cast.direct_for_us).await?;
        let last = jobs.first();
        migration.source_hash = last.and_then(|job| job.source_hash.clone());
        migration.target_hash = last.and_then(|job| job.target_hash.clone());
        migration.pages_again = verdict.again;
        figures.lost += verdict.differences.lost;
        figures.doubled += verdict.differences.doubled;
        figures.altered += verdict.differences.altered;
        figures.complaints.extend(verdict.differences.findings);
        figures.complaints.extend(verdict.complaints);
        if disturbed {
            figures.disturbed = migration;
        } else {
            // One third of the processes fetches, and one third of the kills is its.
            kills = (0..extent.kills)
                .map(|_| {
                    let role =
                        *[Role::Fetcher, Role::Worker, Role::Worker].choose(&mut chance).expect("some");
                    (role, expect.mul_f64(chance.random_range(0.01..0.97)))
                })
                .collect();
            kills.sort_by_key(|(_, moment)| *moment);
            figures.undisturbed = migration;
        }
        ground.remove().await?;
    }
    figures.judge(extent);
    Ok(figures)
}

impl Figures {
    fn judge(&mut self, extent: Extent) {
        let (calm, rough) = (&self.undisturbed, &self.disturbed);
        self.time_ratio = rough.seconds / calm.seconds.max(0.001);
        self.same_proof = calm.source_hash.is_some()
            && calm.source_hash == rough.source_hash
            && calm.target_hash == rough.target_hash;
        if rough.kills < extent.kills {
            self.complaints.push(format!("only {} of {} kills landed", rough.kills, extent.kills));
        }
        if self.time_ratio > RATIO_MAX && calm.seconds >= RATIO_SECONDS {
            self.complaints.push(format!("the ratio of times is above {RATIO_MAX}"));
        }
        if rough.pages_again > PAGES_AGAIN_MAX * rough.kills as u64 {
            self.complaints.push(format!("more than {PAGES_AGAIN_MAX} pages were asked again for each kill"));
        }
        let [first, _, last] = calm.rss_bytes_by_third;
        if last > first + GROWTH_MAX {
            self.complaints.push(format!("memory grew from {first} to {last} bytes"));
        }
        for (what, peak) in [
            ("undisturbed fetcher", calm.fetcher_peak_rss_bytes),
            ("undisturbed worker", calm.worker_peak_rss_bytes),
            ("fetcher", rough.fetcher_peak_rss_bytes),
            ("worker", rough.worker_peak_rss_bytes),
        ] {
            if peak > PEAK_MAX {
                self.complaints.push(format!("a {what} used {peak} bytes"));
            }
        }
    }
}

/// Migrates once, with these kills.
async fn migrate(cast: &Cast<'_>, kills: &[(Role, Duration)]) -> anyhow::Result<(Migration, Duration)> {
    let mut migration = Migration::default();
    let began = Instant::now();
    let mut company = Company::raise(cast, PROCESSES, None)?;
    company.limit = MIGRATION_LIMIT;
    let mut due = kills.iter().peekable();
    let mut samples = Vec::new();
    while !company.ends_within(LOOK_EVERY).await? {
        let fetcher = company.main.running.peak_rss_bytes();
        migration.fetcher_peak_rss_bytes = migration.fetcher_peak_rss_bytes.max(fetcher);
        let workers = company.others.iter().map(|player| player.running.peak_rss_bytes());
        let worker = workers.max().unwrap_or_default();
        migration.worker_peak_rss_bytes = migration.worker_peak_rss_bytes.max(worker);
        let players = company.others.iter().chain(std::iter::once(&company.main));
        let now = players.map(|player| player.running.rss_bytes()).max().unwrap_or_default();
        samples.push((began.elapsed(), now));
        while let Some((role, _)) = due.next_if(|(_, moment)| began.elapsed() >= *moment) {
            migration.kills += usize::from(company.kill(*role).await?);
        }
    }
    let took = began.elapsed();
    company.dismiss().await?;
    migration.seconds = took.as_secs_f64();
    for (at, bytes) in samples {
        let third = (3.0 * at.div_duration_f64(took) / (1.0 - END)) as usize;
        let most = migration.rss_bytes_by_third.get_mut(third).unwrap_or(&mut migration.rss_bytes_at_end);
        *most = bytes.max(*most);
    }
    Ok((migration, took))
}
