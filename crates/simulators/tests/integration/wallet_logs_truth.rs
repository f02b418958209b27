//! The truth of an export of wallet logs, and the mixture that a right migration survives.

use std::collections::{BTreeMap, HashMap, HashSet};

use crossdock_simulators::wallet_logs::{Amount, FaultPlan, Logs, Row, Verdict};
use serde_json::{Value, json};

use crate::export::{Export, ids, next_cursor};

const EVERY_VERDICT: &str = "missing-id@3,nul@5,amount@7:1e-7,broken-balance@9,duplicate@11,conflict@13,conflict@15:40,\
                             twin@17,self-transfer@19,null-narration@21,unknown-wallet@23";

#[tokio::test]
async fn the_numbers_are_those_of_the_rows() {
    let export = Export::with_faults(2_000, EVERY_VERDICT).await;
    let logs = export.running.logs();
    let rows: Vec<Row> = logs.truth().collect();
    let truth = export.try_ask("GET", "/truth", "none").await.unwrap().json();
    let of = |wanted: fn(&Verdict) -> bool| rows.iter().filter(|row| wanted(&row.verdict)).count();
    assert_eq!(rows.len(), 2_005);
    assert_eq!(truth["count"], 2_005);
    assert_eq!(truth["repeated"], of(|verdict| *verdict == Verdict::Repeats));
    assert_eq!(truth["bad"], of(|verdict| matches!(verdict, Verdict::Fails(_))));
    assert_eq!(truth["good"], of(|verdict| matches!(verdict, Verdict::Lands | Verdict::Flagged)));
    assert_eq!((&truth["repeated"], &truth["bad"], &truth["good"]), (&json!(1), &json!(7), &json!(1_997)));
    let distinct: HashSet<_> = rows.iter().map(|row| row.log.id).collect();
    assert_eq!(truth["distinct_ids"], distinct.len());

    let mut sums: BTreeMap<(String, String), (u64, Amount)> = BTreeMap::new();
    for row in rows.iter().filter(|row| matches!(row.verdict, Verdict::Lands | Verdict::Flagged)) {
        let key = (row.log.currency.to_owned(), row.log.kind.name().to_owned());
        let (records, amount) = sums.entry(key).or_default();
        *records += 1;
        *amount = *amount + row.log.amount;
    }
    let sums: Vec<Value> = sums
        .iter()
        .map(|((currency, kind), (records, amount))| {
            json!({"currency": currency, "type": kind, "records": records, "amount": amount.to_string()})
        })
        .collect();
    assert_eq!(truth["sums"], json!(sums));
    assert_eq!(sums.len(), 8, "four currencies, two types");
}

#[tokio::test]
async fn bad_and_flagged_records_are_told_by_id() {
    let export = Export::with_faults(2_000, EVERY_VERDICT).await;
    let truth = export.get("/truth").await.json();
    let id = |index: u64| export.running.logs().log(index).id.to_string();
    let told = |name: &str| {
        let kinds = truth[name].as_array().unwrap().iter();
        kinds
            .map(|kind| (kind["fault"].as_str().unwrap().to_owned(), kind.clone()))
            .collect::<HashMap<_, _>>()
    };
    let bad = told("bad_ids");
    for (fault, reason, index) in [
        ("missing-id", "missing_id", 3),
        ("nul", "nul_in_text", 5),
        ("amount", "inexact_amount", 7),
        ("conflict", "conflicting_duplicate", 13),
        ("unknown-wallet", "unknown_wallet", 23),
    ] {
        assert_eq!(bad[fault], json!({"fault": fault, "reason": reason, "ids": [id(index)]}));
    }
    assert_eq!(bad["conflict (again)"]["ids"], json!([id(13), id(15)]));
    let flagged = told("flagged_ids");
    assert_eq!(flagged["broken-balance"]["ids"], json!([id(9)]));
    assert_eq!(flagged["conflict"]["ids"], json!([id(15)]));
    assert_eq!(flagged["self-transfer"]["ids"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_row_is_told_over_http() {
    let export = Export::with_faults(2_000, EVERY_VERDICT).await;
    let answer = export.try_ask("GET", "/truth/rows", "none").await.unwrap();
    assert!(answer.complete);
    let lines: String = export.running.logs().truth().map(|row| row.line()).collect();
    assert_eq!(answer.text(), lines);
    let row: Value = serde_json::from_str(lines.lines().nth(5).unwrap()).unwrap();
    assert_eq!(
        (&row["verdict"], &row["reason"], &row["fault"]),
        (&json!("fails"), &json!("nul_in_text"), &json!("nul"))
    );
    assert_eq!((row["metadata"].as_object().unwrap().len(), &row["narration"]), (5, &Value::Null));
}

#[tokio::test]
async fn it_is_told_how_often_each_page_was_asked_and_served() {
    let export = Export::with_faults(300, "500@2,cut@3").await;
    let first = next_cursor(&export.page("limit=100", "").await.json()).unwrap();
    for _ in 0..3 {
        export.page("limit=100", &first).await;
    }
    export.page("limit=100&shard=0", "").await;
    let asked = export.get("/truth").await.json()["asked"].clone();
    let page = |shard: Option<u64>, index, asked, served| json!({"shard": shard, "index": index, "sub": 0, "asked": asked, "served": served});
    assert_eq!(asked["pages"], json!([page(None, 0, 1, 1), page(None, 100, 3, 1), page(Some(0), 0, 1, 1)]));
    assert_eq!(
        (&asked["list_requests"], &asked["pages_served"], &asked["requests"]),
        (&json!(5), &json!(3), &json!(6))
    );
    assert_eq!(asked["struck"], json!([{"request": 2, "fault": "500"}, {"request": 3, "fault": "cut"}]));
}

#[test]
fn the_rough_mixture_has_as_many_bad_records_as_it_says() {
    for (count, each) in [(5_000, 1), (250_000, 3)] {
        let summary = Logs::generate(count, 4).with_faults(&FaultPlan::rough()).summary();
        assert_eq!((summary.bad, summary.good), (12 * each, count - 12 * each));
        assert_eq!((summary.repeated, summary.count), (count / 500, count + count / 500));
        assert_eq!(summary.distinct_ids, count);
        assert_eq!(summary.bad_ids.len(), 12);
        assert!(summary.flagged_ids.is_empty());
    }
}

/// Walks as a right migration does: it asks again, and begins behind the last id when its cursor is dead.
async fn patient_walk(export: &Export) -> Vec<String> {
    let (mut met, mut query) = (Vec::<String>::new(), String::new());
    for _ in 0..1_000 {
        let path = format!("/wallet-logs?limit=100{query}");
        let Some(answer) = export.try_ask("GET", &path, export.running.token()).await else { continue };
        let page: Option<Value> = match answer.header("content-encoding") {
            Some(_) => {
                let mut text = Vec::new();
                let mut decoder = flate2::read::GzDecoder::new(answer.body.as_slice());
                std::io::Read::read_to_end(&mut decoder, &mut text).ok().and_then(|_| parse(&text))
            }
            None => parse(&answer.body),
        };
        let Some(page) = page.filter(|_| answer.complete) else { continue };
        if answer.status == 400 && page["error"]["code"] == "EXPIRED" {
            let last = met.iter().rev().find(|id| id.len() == 36).expect("the first page has no cursor");
            query = format!("&after_id={last}");
            continue;
        }
        let (200, Some(_), Some(meta)) = (answer.status, page.get("data"), page.get("meta")) else {
            continue;
        };
        met.extend(ids(&page));
        match meta["next_cursor"].as_str() {
            Some(cursor) => query = format!("&cursor={}", crate::client::encoded(cursor)),
            None => return met,
        }
    }
    panic!("a walk that does not end")
}

/// Two of the bad records are no JSON in the eyes of most readers.
fn parse(body: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(body).replace(r"\ud835", "?");
    serde_json::from_str(&text).ok()
}

#[tokio::test]
async fn a_patient_client_loses_nothing_in_the_rough_mixture() {
    for seed in 1..=3 {
        let logs = Logs::generate(8_000, seed);
        let export =
            Export::start(logs, "rough", crossdock_simulators::wallet_logs::Options::default()).await;
        let met: HashSet<String> = patient_walk(&export).await.into_iter().collect();
        let good = export.running.logs().truth().filter(|row| row.verdict == Verdict::Lands);
        assert!(good.map(|row| row.log.id.to_string()).all(|id| met.contains(&id)), "seed {seed}");
        let struck: HashSet<String> =
            export.running.stats().struck.into_iter().map(|struck| struck.fault).collect();
        assert_eq!(struck.len(), 22, "seed {seed}: {struck:?}");
    }
}
