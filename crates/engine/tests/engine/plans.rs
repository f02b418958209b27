//! What the loops ask again and again must not grow with what is staged.

use engine::JobId;

use crate::support::source::Script;
use crate::support::{Bench, sql};

/// A job with 1,000,000 staged records in 20 closed segments of 100 chunks, all but the last few settled.
async fn large(bench: &Bench) -> JobId {
    let id = bench.job().await;
    let job = id.0.get();
    let series = match bench.database.kind() {
        db::Kind::Sqlite => {
            "(WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999999) SELECT i FROM n)"
        }
        db::Kind::Postgres => "(SELECT generate_series(0, 999999) AS i)",
    };
    let block = match bench.database.kind() {
        db::Kind::Sqlite => "CAST('{}' AS BLOB)",
        db::Kind::Postgres => "'{}'::BYTEA",
    };
    let (stage, stage_of, place, of_place) = match bench.database.kind() {
        db::Kind::Sqlite => {
            (", stage", ", i + 1", "place", "(i / 500 + 1) * 16777216 + (i % 500) * 100".to_owned())
        }
        db::Kind::Postgres => {
            ("", "", "job_id, part, segment, first_ordinal", format!("{job}, 0, i / 500, (i % 500) * 100"))
        }
    };
    for text in [
        format!("UPDATE crossdock.jobs SET status = 'running', partitioned = TRUE WHERE id = {job}"),
        format!(
            "INSERT INTO crossdock.partitions (job_id, part, key, segment, records, pages) VALUES ({job}, 0, 'p0', 20, 1000000, 10000)"
        ),
        format!(
            "INSERT INTO crossdock.segments (job_id, part, segment, run, anchor, pages, records, status{stage})
            SELECT {job}, 0, i, 1, 'x', 500, 50000, 'closed'{stage_of} FROM {series} s WHERE i < 20"
        ),
        format!(
            "INSERT INTO crossdock.chunks (job_id, part, segment, first_ordinal, records, status, imported)
            SELECT {job}, 0, i / 100, (i % 100) * 500, 500,
                CASE WHEN i < 1900 THEN 'settled' ELSE 'ready' END, CASE WHEN i < 1900 THEN 500 ELSE 0 END
            FROM {series} s WHERE i < 2000"
        ),
        format!(
            "INSERT INTO crossdock.staged_pages ({place}, records, block) SELECT {of_place}, 100, {block} FROM {series} s WHERE i < 10000"
        ),
    ] {
        sql::execute(&bench.database, &text).await;
    }
    sql::execute(&bench.database, "ANALYZE").await;
    id
}

/// The statements as the store has them, with literals for parameters.
fn statements(kind: db::Kind, id: JobId) -> Vec<(&'static str, String)> {
    let job = id.0.get();
    let (records, cleaning, discarding) = match kind {
        db::Kind::Sqlite => (
            format!("SELECT r.place - s.stage * 16777216, r.block FROM segments s
                JOIN staged_pages r ON r.place < s.stage * 16777216 + 1000 AND r.place >= s.stage * 16777216
                    AND r.place >= COALESCE((SELECT MAX(place) FROM staged_pages WHERE place <= s.stage * 16777216 + 500), 0)
                WHERE s.job_id = {job} AND s.part = 0 AND s.segment = 7 ORDER BY r.place"),
            "DELETE FROM staged_pages WHERE place >= 8 * 16777216 AND place < (8 + 1) * 16777216".to_owned(),
            format!("SELECT r.place FROM segments s
                JOIN staged_pages r ON r.place >= s.stage * 16777216 AND r.place < (s.stage + 1) * 16777216
                WHERE s.job_id = {job} AND s.status <> 'cleaned' LIMIT 5000"),
        ),
        db::Kind::Postgres => (
            format!("SELECT first_ordinal, block FROM crossdock.staged_pages
                WHERE job_id = {job} AND part = 0 AND segment = 7 AND first_ordinal < 1000 AND first_ordinal >= (
                    SELECT COALESCE(MAX(first_ordinal), 0) FROM crossdock.staged_pages
                    WHERE job_id = {job} AND part = 0 AND segment = 7 AND first_ordinal <= 500)
                ORDER BY first_ordinal"),
            format!("DELETE FROM crossdock.staged_pages WHERE job_id = {job} AND part = 0 AND segment = 7"),
            format!("SELECT part, segment, first_ordinal FROM crossdock.staged_pages WHERE job_id = {job}
                ORDER BY part, segment, first_ordinal LIMIT 5000"),
        ),
    };
    vec![
        (
            "due",
            format!(
                "SELECT part FROM crossdock.chunks WHERE job_id = {job} AND status = 'ready'
            ORDER BY part, segment, first_ordinal LIMIT 1"
            ),
        ),
        (
            "ready chunks",
            format!("SELECT COUNT(*) FROM crossdock.chunks WHERE job_id = {job} AND status = 'ready'"),
        ),
        (
            "backlog",
            format!(
                "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM crossdock.segments WHERE job_id = {job} AND status <> 'cleaned'"
            ),
        ),
        ("a chunk's records", records),
        ("cleaning", cleaning),
        ("discarding", discarding),
        (
            "cancelled with something staged",
            "SELECT DISTINCT s.job_id FROM crossdock.segments s JOIN crossdock.jobs j ON j.id = s.job_id
            WHERE s.status <> 'cleaned' AND j.status = 'cancelled'"
                .to_owned(),
        ),
    ]
}

db::on_both!(no_look_at_a_million_staged_records_scans_them, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(1, 1)).await;
    let id = large(&bench).await;
    for (what, statement) in statements(bench.database.kind(), id) {
        let plan = match bench.database.kind() {
            db::Kind::Sqlite => {
                let text = format!("EXPLAIN QUERY PLAN {statement}").replace("crossdock.", "");
                let mut reader = bench.database.read().await.unwrap();
                let db::Conn::Sqlite(conn) = reader.conn() else { unreachable!() };
                let rows: Vec<(i64, i64, i64, String)> =
                    sqlx::query_as(sqlx::AssertSqlSafe(text)).fetch_all(conn).await.unwrap();
                rows.into_iter().map(|row| row.3).collect::<Vec<_>>().join("\n")
            }
            db::Kind::Postgres => {
                sql::texts(&bench.database, &format!("EXPLAIN {statement}")).await.join("\n")
            }
        };
        for scan in
            ["SCAN staged_pages", "SCAN r", "SCAN chunks", "Seq Scan on staged_pages", "Seq Scan on chunks"]
        {
            assert!(!plan.contains(scan), "{what}:\n{plan}");
        }
    }
    // And the functions themselves, with the plan's effect: these read a few hundred rows each.
    let began = std::time::Instant::now();
    let mut reader = bench.database.read().await.unwrap();
    for _ in 0..20 {
        engine::store::jobs::remaining(reader.conn(), id).await.unwrap();
        engine::store::pages::backlog(reader.conn(), id).await.unwrap();
        engine::store::pages::any_cleanable(reader.conn(), id).await.unwrap();
        engine::store::chunks::any_due(reader.conn(), id, true).await.unwrap();
    }
    let took = began.elapsed();
    assert!(took.as_secs() < 2, "20 rounds took {took:?}");
});
