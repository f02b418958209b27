//! Every fault of a record of wallet logs by name, seen from the wire.

use std::collections::HashSet;

use crossdock_simulators::wallet_logs::{Amount, Logs, Row, Verdict};
use serde_json::{Value, json};

use crate::export::{Export, ids, next_cursor, records};

/// The place of the record that is made odd.
const PLACE: usize = 7;

/// The bytes of the odd record, and of the same record without its fault.
async fn odd_and_plain(fault: &str) -> (Vec<u8>, String) {
    let place = fault.find(':').unwrap_or(fault.len());
    let fault = format!("{}@{PLACE}{}", &fault[..place], &fault[place..]);
    let odd = Export::with_faults(40, &fault).await.page("limit=40", "").await.body;
    let plain = Export::with_faults(40, "none").await.page("limit=40", "").await.body;
    let plain = String::from_utf8(cut(&plain, PLACE).to_vec()).unwrap();
    (cut(&odd, PLACE).to_vec(), plain)
}

/// The bytes of one record of a page, found by its brackets.
fn cut(body: &[u8], place: usize) -> &[u8] {
    let (mut depth, mut found, mut start, mut quoted) = (0, 0, 0, false);
    for (at, byte) in body.iter().enumerate() {
        match byte {
            b'"' if body[at - 1] != b'\\' || body[at - 2] == b'\\' => quoted = !quoted,
            b'{' if !quoted => {
                depth += 1;
                if depth == 2 {
                    start = at;
                }
            }
            b'}' if !quoted => {
                depth -= 1;
                if depth == 1 {
                    if found == place {
                        return &body[start..=at];
                    }
                    found += 1;
                }
            }
            _ => {}
        }
    }
    panic!("there are {found} records")
}

/// The value of a key as it is written, and the comma before it if it has one.
fn written<'a>(record: &'a str, key: &str) -> &'a str {
    let start = record.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {record}"));
    let from = start + key.len() + 3;
    let end = record[from..].find(",\"").or_else(|| record[from..].rfind('}')).unwrap();
    &record[from..from + end]
}

#[tokio::test]
async fn an_odd_value_stands_as_it_is_written_and_the_rest_as_before() {
    for (fault, key, expected) in [
        ("null-id", "id", "null".to_owned()),
        ("numeric-id", "id", ((1_u64 << 53) + 15).to_string()),
        ("big-seq", "seq", ((1_u64 << 53) + 8).to_string()),
        ("amount:1e-7", "amount", "1e-7".to_owned()),
        ("amount:-5.00", "amount", "-5.00".to_owned()),
        ("amount:36583610105684000000", "amount", "36583610105684000000".to_owned()),
        ("nul", "narration", r#""a\u0000b""#.to_owned()),
        ("lone-surrogate", "narration", r#""a\ud835b""#.to_owned()),
        ("null-narration", "narration", "null".to_owned()),
        ("null-created-at", "created_at", "null".to_owned()),
        ("created-at", "created_at", r#""2024-03-31T02:30:00""#.to_owned()),
        ("created-at:2024-03-31T02:30:00+01:00", "created_at", r#""2024-03-31T02:30:00+01:00""#.to_owned()),
        ("unknown-type", "type", r#""cashback""#.to_owned()),
        ("unknown-type:fee", "type", r#""fee""#.to_owned()),
        ("broken-json", "amount", String::new()),
    ] {
        let (odd, plain) = odd_and_plain(fault).await;
        let odd = String::from_utf8(odd).unwrap();
        assert_eq!(written(&odd, key), expected, "{fault}");
        let value = written(&plain, key);
        assert_ne!(value, expected, "{fault}");
        let whole = |value: &str| format!("\"{key}\":{value}");
        assert_eq!(odd, plain.replace(&whole(value), &whole(&expected)), "{fault}");
    }
}

#[tokio::test]
async fn an_amount_may_be_a_number_and_its_wallet_still_adds_up() {
    let (odd, plain) = odd_and_plain("amount-number").await;
    let amount = written(&plain, "amount");
    assert_eq!(String::from_utf8(odd).unwrap(), plain.replacen(amount, amount.trim_matches('"'), 1));

    for text in ["0.1", "9999999999999999.01", "-0", "1.0E+2"] {
        let fault = format!("amount@30:{text}");
        let export = Export::with_faults(400, &fault).await;
        let body = export.page("limit=400", "").await.body;
        let record = String::from_utf8(cut(&body, 30).to_vec()).unwrap();
        assert_eq!(written(&record, "amount"), text);
        let row = export.running.logs().truth().nth(30).unwrap();
        assert_eq!((row.verdict, Some(row.log.amount)), (Verdict::Lands, Amount::read(text)), "{text}");
        let mut balance = Amount::default();
        for other in export.running.logs().truth().filter(|other| other.log.account == row.log.account) {
            assert_eq!(other.log.balance_before, balance, "{text} at {}", other.log.index);
            balance = other.log.balance_after;
            assert!(balance <= Amount::MAX);
        }
    }
}

#[tokio::test]
async fn what_is_missing_is_missing_alone() {
    for (fault, key) in
        [("missing-id", "id"), ("missing-narration", "narration"), ("missing-created-at", "created_at")]
    {
        let (odd, plain) = odd_and_plain(fault).await;
        let (odd, mut plain): (Value, Value) =
            (serde_json::from_slice(&odd).unwrap(), serde_json::from_str(&plain).unwrap());
        assert!(plain.as_object_mut().unwrap().remove(key).is_some());
        assert_eq!(odd, plain, "{fault}");
    }
}

#[tokio::test]
async fn a_narration_may_hold_what_is_no_text() {
    let (odd, _) = odd_and_plain("invalid-utf8").await;
    assert!(odd.windows(17).any(|bytes| bytes == b"\"narration\":\"a\xFFb\""));
    assert!(String::from_utf8(odd).is_err());
}

#[tokio::test]
async fn a_time_may_lack_its_offset_or_have_another() {
    let (odd, plain) = odd_and_plain("local-time").await;
    assert_eq!(String::from_utf8(odd).unwrap(), plain.replace("Z\"}", "\"}"));
    let (odd, plain) = odd_and_plain("offset-time").await;
    let odd: Value = serde_json::from_slice(&odd).unwrap();
    let plain: Value = serde_json::from_str(&plain).unwrap();
    let (odd, plain) = (odd["created_at"].as_str().unwrap(), plain["created_at"].as_str().unwrap());
    assert!(odd.ends_with("+01:00") && plain.ends_with('Z'));
    // The tests' day has no hour that an hour more would carry over.
    let hour = |text: &str| text[11..13].parse::<u32>().unwrap();
    assert_eq!((hour(odd), &odd[13..23]), (hour(plain) + 1, &plain[13..23]));
}

#[test]
fn a_time_of_ones_own_is_judged_by_its_offset() {
    for (text, verdict) in [
        ("2024-03-31T02:30:00", Verdict::Fails("ambiguous_time")),
        ("2024-03-31T02:30:00+01:00", Verdict::Lands),
        ("2024-03-31T02:30:00.123456Z", Verdict::Flagged),
        ("yesterday", Verdict::Fails("invalid_time")),
    ] {
        let logs = Logs::generate(40, 1).with_faults(&format!("created-at@7:{text}").parse().unwrap());
        let row = logs.truth().nth(7).unwrap();
        assert_eq!(row.verdict, verdict, "{text}");
        assert_eq!(row.log.created_at_ms == 1_711_848_600_000, verdict == Verdict::Lands, "{text}");
    }
}

#[tokio::test]
async fn strangers_and_contradictions_are_in_their_fields_alone() {
    for (fault, fields) in [
        ("unknown-wallet", &["wallet_id"] as &[_]),
        ("currency-mismatch", &["currency"]),
        ("broken-balance", &["balance_before", "balance_after"]),
        ("wrong-balance", &["balance_after"]),
        ("same-reference", &["reference"]),
    ] {
        let (odd, plain) = odd_and_plain(fault).await;
        let (odd, plain): (Value, Value) =
            (serde_json::from_slice(&odd).unwrap(), serde_json::from_str(&plain).unwrap());
        let changed: HashSet<_> = plain
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, value)| odd[key.as_str()] != **value)
            .map(|(key, _)| key.as_str())
            .collect();
        assert_eq!(changed, fields.iter().copied().collect(), "{fault}");
    }
    let export = Export::with_faults(40, "same-reference@7").await;
    let page = export.page("limit=40", "").await.json();
    assert_eq!(records(&page)[7]["reference"], records(&page)[6]["reference"]);
    let export = Export::with_faults(2_000, "unknown-wallet@7").await;
    let wallet = export.page("limit=40", "").await.json()["data"][7]["wallet_id"].clone();
    assert!(export.running.logs().truth().skip(8).all(|row| row.log.wallet_id.to_string() != wallet));
}

#[tokio::test]
async fn a_record_comes_twice_at_once_or_on_a_later_page() {
    let export = Export::with_faults(300, "duplicate@20,duplicate@30:150,conflict@40,conflict@50:150").await;
    let pages = export.pages("limit=100").await;
    let sizes: Vec<usize> = pages.iter().map(|page| records(page).len()).collect();
    assert_eq!(sizes, [100, 100, 100, 4]);
    assert_eq!(pages[0]["meta"]["total"], 300, "what is told twice is one row");
    let all: Vec<&Value> = pages.iter().flat_map(records).collect();
    let places = |id: &Value| (0..all.len()).filter(|at| all[*at]["id"] == *id).collect::<Vec<_>>();
    assert_eq!((places(&all[20]["id"]), all[20]), (vec![20, 21], all[21]));
    assert_eq!((places(&all[31]["id"]), all[31]), (vec![31, 183], all[183]));
    for (place, again) in [(41, 42), (52, 204)] {
        assert_eq!(places(&all[place]["id"]), [place, again]);
        assert_ne!(all[place]["amount"], all[again]["amount"]);
        assert_eq!(all[place]["reference"], all[again]["reference"]);
    }
}

#[tokio::test]
async fn equal_content_under_another_id_is_another_row() {
    let export = Export::with_faults(300, "twin@20,twin@30:50").await;
    let pages = export.pages("limit=100").await;
    assert_eq!(pages[0]["meta"]["total"], 302);
    let all: Vec<Value> = pages.iter().flat_map(records).cloned().collect();
    let without = |record: &Value, keys: &[&str]| {
        let mut record = record.clone();
        keys.iter().for_each(|key| drop(record.as_object_mut().unwrap().remove(*key)));
        record
    };
    assert_eq!(without(&all[20], &["id"]), without(&all[21], &["id"]));
    let later = (32..all.len()).find(|at| all[*at]["reference"] == all[31]["reference"]).unwrap();
    assert!((81..88).contains(&later), "at {later}");
    assert_eq!(without(&all[31], &["id", "created_at"]), without(&all[later], &["id", "created_at"]));
    let keys: Vec<_> =
        all.iter().map(|record| (record["created_at"].to_string(), record["id"].to_string())).collect();
    assert!(keys.is_sorted());
    assert_eq!(keys.iter().map(|(_, id)| id).collect::<HashSet<_>>().len(), 302);
}

#[tokio::test]
async fn a_transfer_to_itself_leaves_the_balance_as_it_is() {
    let export = Export::with_faults(300, "self-transfer@20").await;
    let page = export.page("limit=100", "").await.json();
    let (own, next) = (&records(&page)[20], &records(&page)[21]);
    assert_eq!((&next["wallet_id"], &next["type"]), (&own["wallet_id"], &json!("credit")));
    assert_eq!(next["metadata"]["counterparty_wallet_id"], own["wallet_id"]);
    assert_eq!(
        (&next["balance_before"], &next["balance_after"]),
        (&own["balance_after"], &own["balance_after"])
    );
    assert_ne!((&next["id"], &next["reference"]), (&own["id"], &own["reference"]));
}

#[tokio::test]
async fn a_late_record_shows_up_behind_the_page_that_should_hold_it() {
    let export = Export::with_faults(300, "late@50,late@299").await;
    let (all, first) = (export.ids(), export.page("limit=100", "").await.json());
    assert_eq!(ids(&first), [&all[..50], &all[51..101]].concat());
    assert_eq!(first["meta"]["total"], 298);
    let rest = export.pages("limit=100").await;
    assert_eq!(ids(&rest[0]), all[..100], "now it is there");
    assert_eq!(rest[0]["meta"]["total"], 299);
    assert_eq!(rest.iter().flat_map(ids).collect::<Vec<_>>(), all[..299]);
    assert_eq!(export.walk("limit=100").await, all);
}

#[tokio::test]
async fn a_record_is_edited_or_deleted_after_it_was_served() {
    let export = Export::with_faults(300, "edit@50,delete@60").await;
    let before = export.page("limit=100", "").await.json();
    let after = export.page("limit=100", "").await.json();
    let (all, id) = (export.ids(), &records(&before)[50]["id"]);
    assert_eq!(ids(&before), all[..100]);
    assert_eq!(ids(&after), [&all[..60], &all[61..101]].concat());
    let (old, new) = (&records(&before)[50], &records(&after)[50]);
    assert_eq!((id, &old["amount"]), (&new["id"], &new["amount"]));
    assert_ne!(old["status"], new["status"]);
    assert!(new["narration"].as_str().unwrap().ends_with(" (edited)"));
    assert_eq!(export.page("", "").await.json()["meta"]["total"], 299);
}

#[tokio::test]
async fn an_offset_loses_a_record_when_another_goes() {
    let export = Export::with_faults(300, "delete@50,duplicate@120").await;
    let (mut met, all) = (Vec::new(), export.ids());
    for _ in 0..3 {
        let path = format!("/wallet-logs?limit=100&offset={}", met.len());
        met.extend(ids(&export.get(&path).await.json()));
    }
    let expected: Vec<String> = [&all[..100], &all[101..]].concat();
    assert_eq!(met, expected, "the record behind the first page is nowhere");
    let beyond = export.get("/wallet-logs?offset=5000").await.json();
    assert_eq!((records(&beyond).len(), &beyond["meta"]["has_more"]), (0, &json!(false)));
}

#[tokio::test]
async fn a_page_that_broke_off_was_not_served() {
    let export = Export::with_faults(300, "edit@50,cut@1,500@2").await;
    for _ in 1..=2 {
        export.page("limit=100", "").await;
    }
    let page = export.page("limit=100", "").await.json();
    assert!(!records(&page)[50]["narration"].as_str().unwrap().contains("edited"));
}

#[tokio::test]
async fn a_record_that_moves_back_is_missed_and_one_that_moves_ahead_is_met_twice() {
    let export = Export::with_faults(300, "move-back@150:100").await;
    let all = export.ids();
    assert_eq!(export.walk("limit=100").await, [&all[..150], &all[151..]].concat());
    let again = export.pages("limit=100").await;
    let met: Vec<String> = again.iter().flat_map(ids).collect();
    assert!(met[50..56].contains(&all[150]), "it stands further back now");
    assert_eq!((met.len(), &again[0]["meta"]["total"]), (300, &json!(300)));
    let times: Vec<String> =
        again.iter().flat_map(records).map(|record| record["created_at"].to_string()).collect();
    assert!(times.is_sorted());

    let export = Export::with_faults(300, "move-ahead@50:100").await;
    let met = export.pages("limit=100").await;
    let seen: Vec<&Value> = met.iter().flat_map(records).filter(|record| record["id"] == all[50]).collect();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0]["created_at"], seen[1]["created_at"]);
    assert_eq!(seen[0]["amount"], seen[1]["amount"]);
}

#[tokio::test]
async fn very_many_records_share_an_instant() {
    let export = Export::with_faults(3_000, "tied@1000x1500").await;
    let pages = export.pages("limit=1000").await;
    let all: Vec<&Value> = pages.iter().flat_map(records).collect();
    let time = &all[1_000]["created_at"];
    let tied = all.iter().filter(|record| record["created_at"] == *time).count();
    assert!((1_500..1_504).contains(&tied), "{tied}");
    let keys: Vec<_> =
        all.iter().map(|record| (record["created_at"].to_string(), record["id"].to_string())).collect();
    assert!(keys.is_sorted());
    assert_eq!(pages.iter().flat_map(ids).collect::<Vec<_>>(), export.ids());
}

#[test]
fn an_odd_record_without_a_place_strikes_one_in_a_thousand() {
    let logs = Logs::generate(50_000, 1).with_faults(&"nul,duplicate".parse().unwrap());
    let rows: Vec<Row> = logs.truth().collect();
    let of = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    assert_eq!((of(Verdict::Fails("nul_in_text")), of(Verdict::Repeats)), (50, 50));
    let places: Vec<u64> =
        rows.iter().filter(|row| row.verdict != Verdict::Lands).map(|row| row.log.index % 1_000).collect();
    assert!(places.iter().collect::<HashSet<_>>().len() > 80, "not all at the same place");
}

#[test]
fn a_record_that_is_odd_already_is_not_chosen_again() {
    let logs = Logs::generate(2_000, 1).with_faults(&"nul@0x1000,duplicate".parse().unwrap());
    let repeated: Vec<u64> =
        logs.truth().filter(|row| row.verdict == Verdict::Repeats).map(|row| row.log.index).collect();
    assert!(matches!(repeated[..], [index] if index >= 1_000), "{repeated:?}");
}

#[tokio::test]
async fn every_record_can_be_bad() {
    let export = Export::with_faults(2_000, "nul@0x2000").await;
    let pages = export.pages("limit=1000").await;
    let narrations = pages.iter().flat_map(records).map(|record| record["narration"].clone());
    assert!(narrations.eq(std::iter::repeat_n(json!("a\u{0}b"), 2_000)));
    assert_eq!(export.running.logs().summary().bad, 2_000);
    assert!(next_cursor(&pages[0]).is_some());
}
