//! Times without an offset, by the clocks of a declared zone.

use engine::Status;

use crate::bank::{Bank, MAP, PIPELINE, PROOF};
use crossdock_ledger::Folder;

fn line(id: i64, at: &str) -> String {
    format!(r#"{{"id":{id},"wallet":"w1","type":"credit","amount":1,"memo":null,"at":"{at}"}}"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e71_local_times_arrive_in_utc_and_what_is_ambiguous_is_kept_as_it_came() {
    let bank = Bank::open().await;
    let pipeline =
        PIPELINE.replace("type = \"timestamptz\"", "type = \"timestamptz\"\nzone = \"Europe/Zurich\"");
    let folder = Folder::of([("pipeline.toml", pipeline.as_str()), ("map.sql", MAP), ("proof.sql", PROOF)]);
    let lines = [
        line(1, "2024-01-15T12:00:00"),
        line(2, "2024-07-15T12:00:00"),
        line(3, "2024-03-31T02:30:00"),
        line(4, "2024-10-27T02:30:00"),
        line(5, "2024-10-27T02:30:00+01:00"),
    ];
    let job = bank.run(folder, &lines).await;
    assert_eq!((job.status, job.outcome()), (Status::Completed, Some("partial")), "{:?}", job.reason);
    let rows = bank
        .texts(
            "SELECT reference || ' ' || to_char(booked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
            FROM bank.transactions ORDER BY 1",
        )
        .await;
    assert_eq!(rows, ["WL-1 2024-01-15 11:00", "WL-2 2024-07-15 10:00", "WL-5 2024-10-27 01:30"]);
    let refused = bank
        .texts(
            "SELECT label || ' ' || code || ' ' || detail || ' ' || encode(raw, 'escape')
            FROM crossdock.quarantine ORDER BY 1",
        )
        .await;
    let expected = [
        (3, "2024-03-31T02:30:00", "2024-03-31T01:30:00Z by the time before, 2024-03-31T00:30:00Z"),
        (4, "2024-10-27T02:30:00", "2024-10-27T00:30:00Z or 2024-10-27T01:30:00Z"),
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:#?}");
    for (told, (id, at, readings)) in refused.iter().zip(expected) {
        assert!(told.starts_with(&format!("WL-{id} ambiguous_time `at` (/at)")), "{told}");
        assert!(told.contains(readings) && told.contains(&line(id, at)), "{told}");
    }
    bank.close().await;
}
