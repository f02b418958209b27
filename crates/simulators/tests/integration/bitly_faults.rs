//! Every fault by name, seen from the wire.

use std::{
    io::Read as _,
    time::{Duration, UNIX_EPOCH},
};

use crossdock_simulators::bitly::{Account, Options};
use flate2::read::GzDecoder;

use crate::client::Simulator;

/// The answer to the first list request under a fault, and what comes when it is asked again.
async fn first_and_again(fault: &str) -> (crate::client::Answer, crate::client::Answer) {
    let simulator = Simulator::with_faults(300, fault).await;
    let first = simulator.list("").await;
    (first, simulator.list("").await)
}

#[tokio::test]
async fn errors_have_their_status_and_code_once() {
    for (name, status, message) in [
        ("429", 429, "RATE_LIMIT_EXCEEDED"),
        ("429-bare", 429, "RATE_LIMIT_EXCEEDED"),
        ("monthly", 429, "MONTHLY_LIMIT_EXCEEDED"),
        ("api-usage", 429, "API_USAGE_LIMIT_EXCEEDED"),
        ("403-limit", 403, "RATE_LIMIT_EXCEEDED"),
        ("400", 400, "BAD_REQUEST"),
        ("401", 401, "UNAUTHORIZED"),
        ("402", 402, "UPGRADE_REQUIRED"),
        ("403", 403, "FORBIDDEN"),
        ("404", 404, "NOT_FOUND"),
        ("422", 422, "UNPROCESSABLE_ENTITY"),
        ("500", 500, "INTERNAL_ERROR"),
        ("502", 502, "BAD_GATEWAY"),
        ("503", 503, "TEMPORARILY_UNAVAILABLE"),
        ("504", 504, "GATEWAY_TIMEOUT"),
        ("error200", 200, "RATE_LIMIT_EXCEEDED"),
    ] {
        let (first, again) = first_and_again(&format!("{name}@1")).await;
        let body = first.json();
        assert_eq!((first.status, body["message"].as_str()), (status, Some(message)), "{name}");
        assert_eq!(body.get("errors").is_some(), !message.ends_with("LIMIT_EXCEEDED"), "{name}");
        assert_eq!(again.ids().len(), 100, "{name}");
    }
}

#[tokio::test]
async fn a_limit_says_when_to_come_back_in_every_form_that_is_met() {
    let options = Options { clock: || UNIX_EPOCH + Duration::from_secs(1_769_847_300), ..Options::default() };
    for (fault, expected) in [
        ("429@1", Some("1")),
        ("429@1:0.5", Some("0.5")),
        ("429@1:99999999999999999999", Some("99999999999999999999")),
        ("429@1:date+60", Some("Sat, 31 Jan 2026 08:16:00 GMT")),
        ("429@1:epoch+60", Some("1769847360")),
        ("429@1:epochms+60", Some("1769847360000")),
        ("429@1:none", None),
        ("429-bare@1", None),
        ("403-limit@1", None),
        ("403-limit@1:2", Some("2")),
        ("503@1", None),
        ("503@1:3", Some("3")),
        ("429@1,no-retry-after", None),
    ] {
        let simulator = Simulator::start(Account::generate(10, 1), fault, options.clone()).await;
        assert_eq!(simulator.list("").await.header("retry-after"), expected, "{fault}");
    }
    let (limit, _) = first_and_again("403-limit@1").await;
    assert_eq!(limit.header("x-ratelimit-reason"), Some("RATE_LIMIT_EXCEEDED"));
}

#[tokio::test]
async fn a_cut_answer_is_half_of_what_was_announced() {
    let (cut, again) = first_and_again("cut@1").await;
    assert_eq!(cut.status, 200);
    assert!(!cut.complete);
    assert_eq!(cut.header("content-length").unwrap().parse::<usize>().unwrap(), again.body.len());
    assert_eq!(cut.body, again.body[..again.body.len() / 2]);
    let (cut, again) = first_and_again("cut-chunked@1").await;
    assert_eq!(cut.status, 200);
    assert!(!cut.complete);
    assert_eq!(cut.header("transfer-encoding"), Some("chunked"));
    assert_eq!(cut.body, again.body[..again.body.len() / 2]);
}

#[tokio::test]
async fn a_dropped_request_has_no_answer_at_all() {
    let simulator = Simulator::with_faults(300, "drop@1").await;
    assert!(simulator.try_get(&simulator.list_path("")).await.is_none());
    assert_eq!(simulator.list("").await.ids().len(), 100);
}

#[tokio::test]
async fn wrong_bodies_are_announced_correctly() {
    for (name, status, content_type, body) in [
        ("html200", 200, "text/html; charset=utf-8", None),
        ("html502", 502, "text/html; charset=utf-8", None),
        ("empty-object", 200, "application/json", Some("{}")),
        ("empty-body", 200, "application/json", Some("")),
    ] {
        let (wrong, again) = first_and_again(&format!("{name}@1")).await;
        assert_eq!(wrong.status, status, "{name}");
        assert!(wrong.complete, "{name}");
        assert_eq!(wrong.header("content-type"), Some(content_type), "{name}");
        match body {
            Some(body) => assert_eq!(wrong.text(), body, "{name}"),
            None => assert!(wrong.text().starts_with("<!DOCTYPE html>"), "{name}"),
        }
        assert_eq!(again.ids().len(), 100, "{name}");
    }
}

#[tokio::test]
async fn truncated_json_has_the_right_length() {
    let (cut, again) = first_and_again("truncated-json@1").await;
    assert!(cut.complete);
    assert_eq!(cut.body, again.body[..again.body.len() / 2]);
}

async fn ask_for_gzip(simulator: &Simulator) -> crate::client::Answer {
    let head = simulator.head(&simulator.list_path(""));
    simulator.send(&format!("{head}Accept-Encoding: gzip, br\r\n\r\n")).await.unwrap()
}

#[tokio::test]
async fn a_compressed_page_holds_the_same_bytes_and_a_truncated_one_lacks_its_end() {
    let simulator = Simulator::with_faults(300, "gzip@1,truncated-gzip@2,truncated-gzip@3:200").await;
    let whole = ask_for_gzip(&simulator).await;
    let truncated = ask_for_gzip(&simulator).await;
    let more = ask_for_gzip(&simulator).await;
    let plain = ask_for_gzip(&simulator).await;
    assert_eq!(whole.header("content-encoding"), Some("gzip"));
    let mut decoded = Vec::new();
    GzDecoder::new(whole.body.as_slice()).read_to_end(&mut decoded).unwrap();
    assert_eq!(decoded, plain.body);
    for (answer, missing) in [(truncated, 8), (more, 200)] {
        assert!(answer.complete);
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(answer.body, whole.body[..whole.body.len() - missing]);
        assert!(GzDecoder::new(answer.body.as_slice()).read_to_end(&mut Vec::new()).is_err());
    }
    assert_eq!(plain.header("content-encoding"), None);
}

#[tokio::test]
async fn a_client_that_takes_no_gzip_gets_a_plain_page_and_a_cut_one() {
    let simulator = Simulator::with_faults(300, "gzip@1,truncated-gzip@2").await;
    let plain = simulator.list("").await;
    assert_eq!(plain.ids().len(), 100);
    let cut = simulator.list("").await;
    assert!(!cut.complete && cut.header("content-encoding").is_none());
}

#[tokio::test]
async fn gzip_as_a_switch_compresses_every_answer_for_who_accepts_it() {
    let simulator = Simulator::with_faults(300, "gzip").await;
    for _ in 0..2 {
        assert_eq!(ask_for_gzip(&simulator).await.header("content-encoding"), Some("gzip"));
    }
    assert_eq!(simulator.list("").await.ids().len(), 100);
}

#[tokio::test]
async fn slow_and_stalled_answers_are_whole_in_the_end() {
    for fault in ["slow@1:30", "stall@1:30"] {
        let (late, again) = first_and_again(fault).await;
        assert!(late.complete, "{fault}");
        assert_eq!(late.body, again.body, "{fault}");
    }
}

#[tokio::test]
async fn a_huge_body_goes_on_for_as_long_as_it_says() {
    let (huge, _) = first_and_again("huge@1:3000000").await;
    assert_eq!(huge.body.len(), 3_000_000);
    assert!(huge.body.starts_with(br#"{"links":["#));
}

#[tokio::test]
async fn a_redirect_leads_elsewhere() {
    let (away, _) = first_and_again("redirect@1:https://evil.example/v4/x").await;
    assert_eq!((away.status, away.header("location")), (302, Some("https://evil.example/v4/x")));
}

#[tokio::test]
async fn cursors_repeat_ring_and_vanish_by_name() {
    let simulator =
        Simulator::with_faults(500, "repeat-cursor@3,ring@5,no-pagination@6,no-cursor@7,foreign-next@8")
            .await;
    let first = simulator.list("").await.cursor();
    let second = simulator.list(&first).await.cursor();
    let repeated = simulator.list(&second).await;
    assert_eq!(repeated.cursor(), second);
    assert_eq!(repeated.ids().len(), 100);
    let third = simulator.list(&second).await.cursor();
    assert_ne!(third, second);
    assert_eq!(simulator.list(&third).await.cursor(), first);
    let bare = simulator.list(&third).await.json();
    assert!(bare.get("pagination").is_none() && bare["links"].is_array());
    let pagination = simulator.list(&third).await.json()["pagination"].clone();
    assert_eq!(pagination, serde_json::json!({"size": 100}));
    let foreign = simulator.list(&third).await.json();
    assert!(
        foreign["pagination"]["next"].as_str().unwrap().starts_with("https://elsewhere.example/v4/groups/")
    );
    assert_eq!(simulator.list(&third).await.ids(), foreign_ids(&foreign));
}

fn foreign_ids(body: &serde_json::Value) -> Vec<String> {
    body["links"].as_array().unwrap().iter().map(|link| link["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_total_is_told_only_where_the_plan_says_so_and_may_be_off() {
    for (plan, expected) in [
        ("none", ["null", "null"]),
        ("total", ["300", "300"]),
        ("total,total-off@2", ["300", "310"]),
        ("total-off@1:-7", ["293", "null"]),
        ("total-off@1x2:\"many\"", ["\"many\"", "\"many\""]),
        ("total,link-deleted@2", ["300", "299"]),
    ] {
        let (first, again) = first_and_again(plan).await;
        let told = [first, again].map(|answer| answer.json()["pagination"]["total"].to_string());
        assert_eq!(told, expected, "{plan}");
    }
}

#[tokio::test]
async fn empty_and_short_pages_have_a_cursor_and_lose_no_link() {
    let simulator = Simulator::with_faults(450, "empty-page@1,empty-page@3,short-page@4").await;
    let mut sizes = Vec::new();
    let (mut ids, mut cursors) = (Vec::new(), vec![String::new()]);
    loop {
        let page = simulator.list(cursors.last().unwrap()).await;
        assert_eq!(page.json()["pagination"]["size"], 100);
        sizes.push(page.ids().len());
        ids.extend(page.ids());
        let cursor = page.cursor();
        assert!(!cursors.contains(&cursor) || cursor.is_empty(), "{cursors:?}");
        if cursor.is_empty() {
            break;
        }
        cursors.push(cursor);
    }
    assert_eq!(sizes, [0, 100, 0, 50, 100, 100, 100]);
    assert_eq!(ids, simulator.walk().await);
}

#[tokio::test]
async fn a_dead_cursor_is_refused_by_name() {
    let simulator = Simulator::with_faults(450, "dead-cursor@2").await;
    let cursor = simulator.list("").await.cursor();
    let dead = simulator.list(&cursor).await;
    assert_eq!((dead.status, dead.json()["message"].as_str()), (400, Some("INVALID_ARG_SEARCH_AFTER")));
}

#[tokio::test]
async fn an_overlapping_page_begins_with_links_of_the_page_before_and_loses_none() {
    let simulator = Simulator::with_faults(450, "dup-page-overlap@2,dup-page-overlap@4:10").await;
    let ids = simulator.walk().await;
    assert_eq!(ids.len(), 463);
    assert_eq!(ids[97..100], ids[100..103]);
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 450);
}

#[tokio::test]
async fn links_come_and_go_between_pages() {
    for (fault, seen, left) in [
        ("link-added@3", 450, 451),
        ("link-added-ahead@3", 451, 451),
        ("link-deleted@3", 449, 449),
        ("link-deleted-behind@3", 450, 449),
    ] {
        let simulator = Simulator::with_faults(450, fault).await;
        let walked = simulator.walk().await;
        assert_eq!(walked.len(), seen, "{fault}");
        assert_eq!(simulator.running.account().links(), left, "{fault}");
        let again = simulator.walk().await;
        assert_eq!(again.len() as u64, left, "{fault}");
        if left == 451 {
            let new: Vec<_> = again.iter().filter(|id| id.starts_with("go.example.com/5")).collect();
            assert_eq!(new.len(), 1, "{fault}");
            assert_eq!(again[0] == *new[0], fault == "link-added@3", "{fault}");
        }
    }
}

#[tokio::test]
async fn what_must_fail_is_never_deleted_between_pages() {
    let simulator =
        Simulator::with_faults(300, "missing-long-url@0x299,link-deleted@1x2,link-deleted-behind@3").await;
    simulator.walk().await;
    assert_eq!(simulator.running.stats().struck.len(), 3);
    assert_eq!(simulator.running.account().planted().len(), 299);
}

#[tokio::test]
async fn an_expired_token_is_refused_everywhere_until_it_is_renewed() {
    let mut simulator = Simulator::with_faults(450, "token-expires@3").await;
    let first = simulator.list("").await.cursor();
    let second = simulator.list(&first).await.cursor();
    for _ in 0..2 {
        assert_eq!(simulator.list(&second).await.status, 401);
        assert_eq!(simulator.get("/v4/user").await.status, 401);
    }
    let old = simulator.token.clone();
    let renewed = simulator.post("/__simulator/mutate", r#"{"op":"renew_token"}"#).await.json();
    renewed["token"].as_str().unwrap().clone_into(&mut simulator.token);
    assert_ne!(old, simulator.token);
    assert_eq!(simulator.list(&second).await.ids().len(), 100);
    simulator.token = old;
    assert_eq!(simulator.get("/v4/user").await.status, 401);
    assert_eq!(simulator.get("/__simulator/stats").await.status, 200);
}

#[tokio::test]
async fn broken_records_are_broken_as_they_are_named() {
    let plan = "missing-long-url@1,null-long-url@2,empty-long-url@3,javascript-destination@4,self-destination@5,\
                deleted-record@6";
    let simulator = Simulator::with_faults(10, plan).await;
    let body = simulator.list("").await.json();
    let links = &body["links"];
    assert!(links[1].get("long_url").is_none());
    assert!(links[2]["long_url"].is_null() && links[2].get("long_url").is_some());
    assert_eq!(links[3]["long_url"], "");
    assert!(links[4]["long_url"].as_str().unwrap().starts_with("javascript:"));
    assert_eq!(links[5]["long_url"], links[5]["link"]);
    assert_eq!(links[6]["is_deleted"], true);
    let planted = simulator.running.account().planted();
    let told: Vec<_> =
        planted.iter().map(|planted| (planted.source_id.as_str(), planted.kind.name())).collect();
    let expected: Vec<_> = plan.split(',').take(5).map(|item| item.split('@').next().unwrap()).collect();
    let ids = simulator.list("").await.ids();
    let expected: Vec<_> = ids[1..6].iter().map(String::as_str).zip(expected).collect();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_rough_walk_gets_through_with_one_try_more_at_a_time() {
    let simulator = Simulator::with_faults(6_000, "rough").await;
    let (mut cursor, mut refused_in_a_row, mut pages) = (String::new(), 0, 0);
    loop {
        let answer = simulator.try_get(&simulator.list_path(&cursor)).await;
        let next =
            answer.as_ref().filter(|answer| answer.status == 200 && answer.complete).and_then(next_cursor);
        let Some(next) = next else {
            refused_in_a_row += 1;
            assert!(refused_in_a_row <= 1, "{:?}", simulator.running.stats().struck);
            continue;
        };
        (refused_in_a_row, pages) = (0, pages + 1);
        if next.is_empty() {
            break;
        }
        cursor = next;
    }
    // The page that overlaps the one before may push the last links to a page of their own.
    assert!((60..=61).contains(&pages), "{pages}");
    let stats = simulator.running.stats();
    assert_eq!(stats.struck.len(), 20);
    let planted = simulator.running.account().planted().len();
    assert!((12..=60).contains(&planted), "{planted} of 6,000");
}

/// The cursor of a page, read without reading its records; some of them are broken on purpose.
fn next_cursor(answer: &crate::client::Answer) -> Option<String> {
    let text = answer.text();
    let (_, rest) = text.rsplit_once(r#""search_after":""#)?;
    let (cursor, end) = rest.split_once('"')?;
    (end == r#","size":100}}"#).then(|| cursor.to_owned())
}
