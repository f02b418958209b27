//! What is wrong with a declaration is found before anything is fetched.

use crossdock_ledger::service::Error;
use crossdock_ledger::{Folder, Variables};
use db::Conn;
use db::testing::TestDatabase;
use engine::Mode;
use sqlx::AssertSqlSafe;

use crate::bank::{Bank, MAP, PIPELINE, PROOF};

async fn problems(bank: &Bank, pipeline: &str, map: &str, proof: &str, check: &str) -> Vec<String> {
    let folder = Folder::of([
        ("pipeline.toml", pipeline),
        ("map.sql", map),
        ("proof.sql", proof),
        ("checks/c.sql", check),
    ]);
    match bank.ledgers.start(folder, Variables::of([("FILE", "/nowhere")]), Mode::Stream).await {
        Ok(_) => Vec::new(),
        Err(Error::Declaration(problems)) => problems.iter().map(ToString::to_string).collect(),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_target_refuses_what_does_not_fit_with_file_and_line() {
    let bank = Bank::open().await;
    let check = "SELECT 1 WHERE false";
    assert_eq!(problems(&bank, PIPELINE, MAP, PROOF, check).await, Vec::<String>::new());
    for (pipeline, map, proof, check, expected) in [
        (
            PIPELINE.replace("bank.transactions", "bank.nothing"),
            MAP.to_owned(),
            PROOF.to_owned(),
            check,
            "there is no table \"bank\".\"nothing\"",
        ),
        (
            PIPELINE.replace("key = [\"reference\"]", "key = [\"ref\"]"),
            MAP.to_owned(),
            PROOF.to_owned(),
            check,
            "has no column `ref`",
        ),
        (
            PIPELINE.replace("key = [\"reference\"]", "key = [\"account_id\"]"),
            MAP.to_owned(),
            PROOF.to_owned(),
            check,
            "no unique index makes (\"account_id\") a key",
        ),
        (
            PIPELINE.to_owned(),
            MAP.replace("a.id AS account_id", "a.no AS account_id"),
            PROOF.to_owned(),
            check,
            "map.sql:1: column a.no does not exist",
        ),
        (
            PIPELINE.to_owned(),
            MAP.replace("a.wallet_id = s.wallet", "a.wallet = s.wallet"),
            PROOF.to_owned(),
            check,
            "map.sql:5: column a.wallet does not exist",
        ),
        (
            PIPELINE.to_owned(),
            MAP.replace("s.amount,", ""),
            PROOF.to_owned(),
            check,
            "map.sql: it does not give `amount`, which \"bank\".\"transactions\" needs (numeric(20,4) NOT NULL)",
        ),
        (
            PIPELINE.to_owned(),
            MAP.replace("s.memo,", "s.memo AS note,"),
            PROOF.to_owned(),
            check,
            "map.sql: it gives a column `note`",
        ),
        (
            PIPELINE.to_owned(),
            MAP.replace("s._record", "1 AS _line"),
            PROOF.to_owned(),
            check,
            "it gives no column `_record`",
        ),
        (
            PIPELINE.to_owned(),
            MAP.replace("s.amount,", "s.memo AS amount,").replace("s.memo, s.metadata", "s.metadata"),
            PROOF.to_owned(),
            check,
            "`amount` does not fit into numeric(20,4)",
        ),
        (
            PIPELINE.to_owned(),
            MAP.to_owned(),
            PROOF.replace("t.memo,", "t.memo AS note,"),
            check,
            "proof.sql: it gives a column `note`, and there is no such field",
        ),
        (
            PIPELINE.to_owned(),
            MAP.to_owned(),
            PROOF.replace("t.kind,", "t.amount AS kind,").replace("t.amount, t.memo", "t.memo"),
            check,
            "",
        ),
        (
            PIPELINE.to_owned(),
            MAP.to_owned(),
            PROOF.replace("t.booked_at AS at", "t.amount AS at"),
            check,
            "proof.sql: it gives `at` as numeric",
        ),
        (
            PIPELINE.to_owned(),
            MAP.to_owned(),
            PROOF.replace("FROM target t", "FROM targets t"),
            check,
            "proof.sql:4: relation \"targets\" does not exist",
        ),
        (
            PIPELINE.to_owned(),
            MAP.to_owned(),
            PROOF.to_owned(),
            "SELECT 1\nFROM bank.nothing",
            "checks/c.sql:2: relation \"bank.nothing\" does not exist",
        ),
    ] {
        let found = problems(&bank, &pipeline, &map, &proof, check).await;
        assert!(
            found.iter().any(|problem| problem.contains(expected))
                || (expected.is_empty() && found.is_empty()),
            "{expected}: {found:#?}"
        );
    }
    assert_eq!(bank.texts("SELECT count(*)::text FROM crossdock.jobs").await, ["2"]);
    bank.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_printed_for_others_to_run_makes_the_schema_and_nobody_needs_to_make_it_again() {
    let test = TestDatabase::empty(db::Kind::Postgres).await;
    let run = async |text: String| {
        let mut tx = test.database.begin().await.unwrap();
        let Conn::Postgres(pg) = tx.conn() else { unreachable!() };
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *pg.conn).await.unwrap();
        tx.commit().await.unwrap();
    };
    for room in [&engine::ROOM, &crossdock_ledger::ROOM] {
        let script = room.postgres_script();
        let body = script.strip_prefix("BEGIN;").and_then(|rest| rest.strip_suffix("COMMIT;")).unwrap();
        run(body.to_owned()).await;
    }
    // Somebody who may use the schema and make nothing.
    let role = format!("guest_{}", db::Id::new());
    run(format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA crossdock TO {role};
        GRANT SELECT ON ALL TABLES IN SCHEMA crossdock TO {role}"
    ))
    .await;
    let mut url = upstream::Url::parse(&test.url).unwrap();
    url.set_username(&role).unwrap();
    let guest = db::Database::open(&url.as_str().parse().unwrap()).await.unwrap();
    for room in [&engine::ROOM, &crossdock_ledger::ROOM] {
        guest.migrate(room).await.unwrap();
    }
    guest.close().await;
    run(format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    test.close().await;
}
