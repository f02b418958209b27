//! The target, read with SQL of its own.

use std::collections::{BTreeSet, HashMap};

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::case::Database;
use crate::ground::Ground;
use crate::links::compare::TargetRow;

/// What stands in a target database after an import.
pub(crate) struct Target {
    pub(crate) rows: Vec<TargetRow>,
    pub(crate) links: u64,
    /// In the order in which they were made.
    pub(crate) jobs: Vec<JobRow>,
    /// Raw records that were not cleaned away.
    pub(crate) staged: i64,
    /// Records in quarantine.
    pub(crate) quarantined: i64,
}

/// A job's books: what its segments say was fetched against what its chunks say became of it.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct JobRow {
    pub(crate) status: String,
    /// Stretches of fetching: one, and one more for each time that fetching began again.
    pub(crate) run: i64,
    pub(crate) fetched: i64,
    pub(crate) imported: i64,
    pub(crate) unchanged: i64,
    /// Every other outcome.
    pub(crate) others: i64,
    /// Chunks that are not settled.
    pub(crate) ready: i64,
    /// Segments that are not cleaned.
    pub(crate) unclean: i64,
}

type SlugRow = (i64, String, String, Option<String>, String, Option<String>, bool, bool, i64, Option<i64>);

struct Queries {
    slugs: &'static str,
    links: &'static str,
    jobs: &'static str,
    staged: &'static str,
    quarantined: &'static str,
}

const TAGS: &str =
    "SELECT link_tags.link_id, tags.name FROM link_tags JOIN tags ON tags.id = link_tags.tag_id";

const SQLITE: Queries = Queries {
    slugs: "SELECT l.id, d.host, s.slug, l.source_id, l.destination, l.title, l.archived, l.enabled, l.created_at,
                   l.expires_at
            FROM slugs s JOIN links l ON l.id = s.link_id JOIN domains d ON d.id = s.domain_id
            WHERE s.deleted_at IS NULL AND l.deleted_at IS NULL",
    links: "SELECT count(*) FROM links WHERE deleted_at IS NULL",
    jobs: "SELECT j.status, j.run,
                  (SELECT coalesce(sum(s.records), 0) FROM segments s WHERE s.job_id = j.id) AS fetched,
                  coalesce(sum(c.imported), 0) AS imported,
                  coalesce(sum(c.unchanged), 0) AS unchanged,
                  coalesce(sum(c.updated + c.skipped + c.filtered + c.duplicate_in_source + c.failed), 0) AS others,
                  coalesce(sum(c.status = 'ready'), 0) AS ready,
                  (SELECT count(*) FROM segments s WHERE s.job_id = j.id AND s.status <> 'cleaned') AS unclean
           FROM jobs j LEFT JOIN chunks c ON c.job_id = j.id GROUP BY j.id ORDER BY j.id",
    staged: "SELECT count(*) FROM staged_pages",
    quarantined: "SELECT count(*) FROM quarantine",
};

const POSTGRES: Queries = Queries {
    slugs: "SELECT l.id, d.host, s.slug, l.source_id, l.destination, l.title, l.archived, l.enabled,
                   (extract(epoch FROM l.created_at) * 1000000)::bigint,
                   (extract(epoch FROM l.expires_at) * 1000000)::bigint
            FROM slugs s JOIN links l ON l.id = s.link_id JOIN domains d ON d.id = s.domain_id
            WHERE s.deleted_at IS NULL AND l.deleted_at IS NULL",
    links: "SELECT count(*) FROM links WHERE deleted_at IS NULL",
    jobs: "SELECT j.status, j.run::bigint AS run,
                  (SELECT coalesce(sum(s.records), 0)::bigint FROM crossdock.segments s WHERE s.job_id = j.id)
                      AS fetched,
                  coalesce(sum(c.imported), 0)::bigint AS imported,
                  coalesce(sum(c.unchanged), 0)::bigint AS unchanged,
                  coalesce(sum(c.updated + c.skipped + c.filtered + c.duplicate_in_source + c.failed), 0)::bigint
                      AS others,
                  count(*) FILTER (WHERE c.status = 'ready') AS ready,
                  (SELECT count(*) FROM crossdock.segments s WHERE s.job_id = j.id AND s.status <> 'cleaned')
                      AS unclean
           FROM crossdock.jobs j LEFT JOIN crossdock.chunks c ON c.job_id = j.id
           GROUP BY j.id ORDER BY j.id",
    staged: "SELECT count(*) FROM crossdock.staged_pages",
    quarantined: "SELECT count(*) FROM crossdock.quarantine",
};

/// The same calls on either kind of connection.
macro_rules! read_all {
    ($conn:expr, $queries:expr) => {{
        let slugs: Vec<SlugRow> = sqlx::query_as($queries.slugs).fetch_all(&mut $conn).await?;
        let tags: Vec<(i64, String)> = sqlx::query_as(TAGS).fetch_all(&mut $conn).await?;
        let links: i64 = sqlx::query_scalar($queries.links).fetch_one(&mut $conn).await?;
        let jobs: Vec<JobRow> = sqlx::query_as($queries.jobs).fetch_all(&mut $conn).await?;
        let staged: i64 = sqlx::query_scalar($queries.staged).fetch_one(&mut $conn).await?;
        let quarantined: i64 = sqlx::query_scalar($queries.quarantined).fetch_one(&mut $conn).await?;
        $conn.close().await?;
        let links = u64::try_from(links)?;
        Ok(Target { rows: rows(slugs, tags), links, jobs, staged, quarantined })
    }};
}

/// Reads everything.
pub(crate) async fn read(ground: &Ground<'_>) -> anyhow::Result<Target> {
    match ground.database {
        Database::Sqlite => {
            let options = SqliteConnectOptions::new().filename(ground.file()).create_if_missing(false);
            let mut conn = options.connect().await.context("cannot open the target")?;
            read_all!(conn, SQLITE)
        }
        Database::Postgres => {
            let options: PgConnectOptions = ground.url(None)?.parse()?;
            let mut conn = options.connect().await.context("cannot open the target")?;
            read_all!(conn, POSTGRES)
        }
    }
}

fn rows(slugs: Vec<SlugRow>, tags: Vec<(i64, String)>) -> Vec<TargetRow> {
    let mut by_link: HashMap<i64, BTreeSet<String>> = HashMap::new();
    for (link, tag) in tags {
        by_link.entry(link).or_default().insert(tag);
    }
    slugs
        .into_iter()
        .map(
            |(link, host, slug, source_id, destination, title, archived, enabled, created_at, expires_at)| {
                let tags = by_link.get(&link).cloned().unwrap_or_default();
                TargetRow {
                    link,
                    host,
                    slug,
                    source_id,
                    destination,
                    title,
                    archived,
                    enabled,
                    created_at,
                    expires_at,
                    tags,
                }
            },
        )
        .collect()
}
