//! The export of wallet logs without faults: its records, its pages, its truth.

use std::collections::{HashMap, HashSet};

use crossdock_simulators::wallet_logs::{Amount, Kind, Logs, Options, Row, Verdict};
use serde_json::{Value, json};

use crate::{
    client::encoded,
    export::{Export, ids, next_cursor, records},
};

/// What the truth says a record looks like.
fn told(row: &Row) -> Value {
    let log = &row.log;
    json!({
        "id": log.id.to_string(),
        "seq": log.seq,
        "wallet_id": log.wallet_id.to_string(),
        "customer_id": log.customer_id.to_string(),
        "type": log.kind.name(),
        "amount": log.amount.to_string(),
        "currency": log.currency,
        "balance_before": log.balance_before.to_string(),
        "balance_after": log.balance_after.to_string(),
        "reference": log.reference.to_string(),
        "status": log.status,
        "narration": row.narration,
        "metadata": serde_json::from_str::<Value>(&row.metadata).unwrap(),
    })
}

#[tokio::test]
async fn a_walk_meets_every_record_of_the_truth_with_its_values() {
    let export = Export::with_faults(2_500, "none").await;
    let pages = export.pages("limit=1000").await;
    let sizes: Vec<usize> = pages.iter().map(|page| records(page).len()).collect();
    assert_eq!(sizes, [1_000, 1_000, 500]);
    let mut served: Vec<Value> = pages.iter().flat_map(records).cloned().collect();
    let truth: Vec<Row> = export.running.logs().truth().collect();
    let mut keys = Vec::new();
    for record in &mut served {
        let created_at = record.as_object_mut().unwrap().remove("created_at").unwrap();
        keys.push((created_at.as_str().unwrap().to_owned(), record["id"].to_string()));
    }
    assert_eq!(served, truth.iter().map(told).collect::<Vec<_>>());
    assert!(keys.is_sorted(), "by created_at and id");
    assert!(keys.windows(2).any(|pair| pair[0].0 == pair[1].0), "some share an instant");
    assert!(truth.iter().all(|row| row.verdict == Verdict::Lands && row.fault.is_none()));
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let mut bodies = Vec::new();
    for seed in [5, 5, 6] {
        let export = Export::start(Logs::generate(3_000, seed), "none", Options::default()).await;
        let first = export.page("limit=1000", "").await;
        let second = export.page("limit=1000", &next_cursor(&first.json()).unwrap()).await;
        bodies.push([first.body, second.body]);
    }
    assert_eq!(bodies[0], bodies[1]);
    assert_ne!(bodies[0], bodies[2]);
    let bytes = bodies[0][0].len() / 1_000;
    assert!((440..540).contains(&bytes), "{bytes} bytes a record");
}

#[test]
fn the_balances_of_every_wallet_are_continuous_and_end_at_the_sum_of_its_movements() {
    let logs = Logs::generate(100_000, 3);
    let mut wallets: HashMap<u64, (Amount, i128)> = HashMap::new();
    let mut keys = HashSet::new();
    for index in 0..logs.count() {
        let log = logs.log(index);
        let (balance, moved) = wallets.entry(log.account).or_default();
        assert_eq!(log.balance_before, *balance, "at {index}");
        let signed = match log.kind {
            Kind::Credit => log.amount.units(),
            Kind::Debit => -log.amount.units(),
        };
        assert_eq!(log.balance_after.units(), log.balance_before.units() + signed, "at {index}");
        assert!(log.amount > Amount::default() && log.balance_after >= Amount::default(), "at {index}");
        *moved += signed;
        *balance = log.balance_after;
        assert!(keys.insert((log.id, log.reference)));
    }
    assert_eq!(wallets.len() as u64, logs.wallets());
    assert!(wallets.values().all(|(balance, moved)| balance.units() == *moved));
}

#[tokio::test]
async fn every_way_of_paging_meets_each_record_exactly_once() {
    let options = Options { partitions: 4, ..Options::default() };
    let export = Export::start(Logs::generate(1_003, 2), "duplicate@99,twin@100,tied@500x120", options).await;
    let all = export.ids();
    assert_eq!(all.len(), 1_005);
    for limit in [1, 7, 100, 1_000] {
        assert_eq!(export.walk(&format!("limit={limit}")).await, all, "by cursor, {limit} at once");
    }

    let mut sharded = Vec::new();
    for shard in 0..4 {
        sharded.extend(export.walk(&format!("shard={shard}&limit=90")).await);
    }
    assert_eq!(sharded, all, "by shard");
    let mut sharded = Vec::new();
    for shard in 0..3 {
        sharded.extend(export.walk(&format!("shard={shard}&shards=3&limit=90")).await);
    }
    assert_eq!(sharded, all, "by shard of another number");

    let times = [
        "2024-01-01T00:00:00Z",
        "2024-01-01T02:03:04.567%2B01:00",
        "2024-01-01T04:00:00Z",
        "2030-01-01T00:00:00Z",
    ];
    let mut ranged = Vec::new();
    for pair in times.windows(2) {
        let part = export.walk(&format!("from={}&to={}&limit=90", pair[0], pair[1])).await;
        assert!(part.len() > 50, "{} from {}", part.len(), pair[0]);
        ranged.extend(part);
    }
    assert_eq!(ranged, all, "by range");
}

#[tokio::test]
async fn a_walk_by_the_last_id_meets_each_record_exactly_once() {
    let export = Export::with_faults(1_003, "twin@100,tied@500x120").await;
    let (mut met, mut after) = (Vec::new(), String::new());
    loop {
        let page = export.get(&format!("/wallet-logs?limit=100&after_id={after}")).await.json();
        met.extend(ids(&page));
        if page["meta"]["has_more"] == false {
            break;
        }
        after = met.last().unwrap().clone();
    }
    assert_eq!(met, export.ids());
    let last = export.get(&format!("/wallet-logs?after_id={}", met.last().unwrap())).await.json();
    assert_eq!((records(&last).len(), &last["meta"]["next_cursor"]), (0, &Value::Null));
}

#[tokio::test]
async fn a_range_is_half_open() {
    let export = Export::with_faults(40, "none").await;
    let page = export.page("limit=40", "").await.json();
    let times: Vec<&str> =
        records(&page).iter().map(|record| record["created_at"].as_str().unwrap()).collect();
    let part = export.walk(&format!("from={}&to={}", times[4], times[20])).await;
    assert_eq!(part, ids(&page)[4..20]);
}

#[tokio::test]
async fn a_page_says_how_many_there_are_and_whether_more_come() {
    let export = Export::with_faults(250, "none").await;
    let pages = export.pages("limit=100").await;
    let meta: Vec<_> = pages.iter().map(|page| page["meta"].clone()).collect();
    for (meta, more) in meta.iter().zip([true, true, false]) {
        assert_eq!(
            (&meta["has_more"], &meta["limit"], &meta["total"]),
            (&json!(more), &json!(100), &json!(250))
        );
        assert_eq!(meta["next_cursor"].is_null(), !more);
    }
    assert_eq!(export.pages("limit=125").await.len(), 2, "no page is empty");
    assert_eq!(records(&export.get("/wallet-logs").await.json()).len(), 100, "the default");
    let none = Export::with_faults(0, "none").await.page("", "").await.json();
    assert_eq!(
        none,
        json!({"data": [], "meta": {"next_cursor": null, "has_more": false, "limit": 100, "total": 0}})
    );
}

#[tokio::test]
async fn what_cannot_be_taken_is_refused_with_its_name() {
    let export = Export::with_faults(250, "none").await;
    let good = next_cursor(&export.page("limit=100", "").await.json()).unwrap();
    // The same place, as another export gives it.
    let forged = Export::start(Logs::generate(250, 2), "none", Options::default()).await;
    let forged = encoded(&next_cursor(&forged.page("limit=100", "").await.json()).unwrap());
    for (parameters, field, code) in [
        (format!("cursor={forged}"), "cursor", "INVALID_PAGE_TOKEN"),
        ("cursor=x".to_owned(), "cursor", "INVALID_PAGE_TOKEN"),
        (format!("shard=1&shards=2&cursor={}", encoded(&good)), "cursor", "INVALID_PAGE_TOKEN"),
        ("after_id=9007199254740993".to_owned(), "after_id", "UNKNOWN_ID"),
        ("after_id=123e4567-e89b-42d3-a456-426614174000".to_owned(), "after_id", "UNKNOWN_ID"),
        ("limit=0".to_owned(), "limit", "OUT_OF_RANGE"),
        ("limit=1001".to_owned(), "limit", "OUT_OF_RANGE"),
        ("limit=x".to_owned(), "limit", "INVALID"),
        ("shard=1".to_owned(), "shard", "OUT_OF_RANGE"),
        ("from=2024-01-01".to_owned(), "from", "INVALID"),
        ("to=x".to_owned(), "to", "INVALID"),
    ] {
        let answer = export.get(&format!("/wallet-logs?{parameters}")).await;
        assert_eq!(answer.status, 400, "{parameters}");
        assert_eq!(answer.json(), json!({"error": {"field": field, "code": code}}), "{parameters}");
    }
    assert_eq!(export.get("/elsewhere").await.status, 404);
    assert_eq!(export.try_ask("POST", "/wallet-logs", export.running.token()).await.unwrap().status, 405);
}

#[tokio::test]
async fn only_the_token_opens_the_list_and_it_can_be_renewed() {
    let options = Options { token: Some("first".to_owned()), ..Options::default() };
    let export = Export::start(Logs::generate(10, 1), "none", options).await;
    let ask = async |token: &str| export.try_ask("GET", "/wallet-logs", token).await.unwrap().status;
    assert_eq!((ask("first").await, ask("other").await, ask("").await), (200, 401, 401));
    assert_eq!(export.try_ask("POST", "/token", "other").await.unwrap().status, 401);
    let renewed = export.try_ask("POST", "/token", "first").await.unwrap().json();
    let renewed = renewed["token"].as_str().unwrap().to_owned();
    assert_eq!((ask("first").await, ask(&renewed).await), (401, 200));
    export.running.expire_token();
    assert_eq!(ask(&renewed).await, 401);
    assert_eq!(ask(&export.running.renew_token()).await, 200);
    assert_eq!(export.running.stats().unauthorized, 4);
}

#[tokio::test]
async fn the_ready_line_says_all_that_a_client_needs() {
    let options = Options { partitions: 4, ..Options::default() };
    let export = Export::start(Logs::generate(2_000, 9), "none", options).await;
    let ready = serde_json::to_value(export.running.ready()).unwrap();
    let token = ready["token"].as_str().unwrap();
    assert!(token.len() > 16);
    assert_eq!(
        ready,
        json!({"url": format!("http://{}", export.running.addr()), "token": token, "count": 2_000, "wallets": 100, "partitions": 4})
    );
}

#[test]
fn accounts_and_customers_are_those_of_the_records() {
    let logs = Logs::generate(2_000, 4);
    let mut script = Vec::new();
    logs.write_accounts_script(&mut script).unwrap();
    let script = String::from_utf8(script).unwrap();
    let (customers, accounts) = script.split_once("\\.\n").unwrap();
    let customers: HashMap<u64, &str> = customers
        .lines()
        .skip(1)
        .map(|row| row.split('\t').collect::<Vec<_>>())
        .map(|row| (row[0].parse().unwrap(), row[1]))
        .collect();
    let accounts: HashMap<u64, Vec<&str>> = accounts
        .lines()
        .filter(|line| line.contains('\t'))
        .map(|row| row.split('\t').collect::<Vec<_>>())
        .map(|row| (row[0].parse().unwrap(), row))
        .collect();
    assert_eq!((customers.len() as u64, accounts.len() as u64), (logs.customers(), logs.wallets()));
    for index in 0..logs.count() {
        let log = logs.log(index);
        let expected = [
            log.account.to_string(),
            log.wallet_id.to_string(),
            log.customer.to_string(),
            log.currency.to_owned(),
            "active".to_owned(),
        ];
        assert_eq!(accounts[&log.account], expected);
        assert_eq!(customers[&log.customer], log.customer_id.to_string());
    }
}
