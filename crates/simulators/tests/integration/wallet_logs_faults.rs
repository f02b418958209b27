//! Every fault of a list request of wallet logs by name, seen from the wire.

use std::{
    io::Read as _,
    time::{Duration, UNIX_EPOCH},
};

use crossdock_simulators::wallet_logs::{Logs, Options};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::{
    client::Answer,
    export::{Export, ids, next_cursor, records},
};

/// The answer to the first list request under a fault, and what comes when it is asked again.
async fn first_and_again(fault: &str) -> (Answer, Answer) {
    let export = Export::with_faults(300, fault).await;
    let first = export.page("", "").await;
    (first, export.page("", "").await)
}

fn is_page(answer: &Answer) -> bool {
    answer.status == 200 && answer.complete && records(&answer.json()).len() == 100
}

#[tokio::test]
async fn errors_have_their_status_once_and_in_bursts() {
    for status in [400, 401, 404, 429, 500, 502, 503, 504, 599] {
        let (first, again) = first_and_again(&format!("{status}@1")).await;
        assert_eq!(first.status, status);
        assert!(first.json()["error"]["code"].is_string());
        assert!(is_page(&again), "{status}");
    }
    let export = Export::with_faults(300, "500@2x3,401@5x2").await;
    let mut statuses = Vec::new();
    for _ in 0..7 {
        statuses.push(export.page("", "").await.status);
    }
    assert_eq!(statuses, [200, 500, 500, 500, 401, 401, 200]);
    let struck: Vec<u64> = export.running.stats().struck.iter().map(|struck| struck.request).collect();
    assert_eq!(struck, [2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_limit_says_when_to_come_back_in_every_form_that_is_met() {
    let options = Options { clock: || UNIX_EPOCH + Duration::from_secs(1_769_847_300), ..Options::default() };
    for (fault, expected) in [
        ("429@1", Some("1")),
        ("429@1:0.5", Some("0.5")),
        ("429@1:99999999999999999999", Some("99999999999999999999")),
        ("429@1:far-date", Some("Fri, 07 Sep 99999 21:00:00 GMT")),
        ("429@1:date+60", Some("Sat, 31 Jan 2026 08:16:00 GMT")),
        ("429@1:epoch+60", Some("1769847360")),
        ("429@1:epochms+60", Some("1769847360000")),
        ("429@1:none", None),
        ("503@1", None),
        ("503@1:7", Some("7")),
        ("429@1:7,no-retry-after", None),
        ("429-expire@1", Some("120")),
        ("429-expire@1:3", Some("3")),
    ] {
        let export = Export::start(Logs::generate(10, 1), fault, options.clone()).await;
        assert_eq!(export.page("", "").await.header("retry-after"), expected, "{fault}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_pages_come_with_200() {
    for (fault, body) in [
        ("throttled200@1", r#"{"errors":[{"extensions":{"code":"THROTTLED"}}]}"#),
        ("empty-body@1", ""),
        ("empty-object@1", "{}"),
    ] {
        let (first, again) = first_and_again(fault).await;
        assert_eq!((first.status, first.text().as_str(), first.complete), (200, body, true), "{fault}");
        assert!(is_page(&again), "{fault}");
    }
    for (fault, status) in [("html200@1", 200), ("html502@1", 502)] {
        let (first, again) = first_and_again(fault).await;
        assert_eq!((first.status, first.header("content-type")), (status, Some("text/html; charset=utf-8")));
        assert!(first.text().starts_with("<!DOCTYPE html>"));
        assert!(is_page(&again), "{fault}");
    }
    let (away, _) = first_and_again("redirect@1:https://evil.example/x").await;
    assert_eq!((away.status, away.header("location")), (302, Some("https://evil.example/x")));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_whole_answer() {
    for (fault, length) in [("cut@1", true), ("cut-chunked@1", false)] {
        let (first, again) = first_and_again(fault).await;
        assert_eq!((first.status, first.complete), (200, false), "{fault}");
        assert_eq!(first.header("content-length").is_some(), length, "{fault}");
        assert!(!first.body.is_empty() && again.body.starts_with(&first.body), "{fault}");
        assert!(is_page(&again), "{fault}");
    }
    let export = Export::with_faults(300, "drop@1,truncated-json@2").await;
    assert!(export.try_ask("GET", "/wallet-logs", export.running.token()).await.is_none());
    let half = export.page("", "").await;
    assert!(half.complete && serde_json::from_slice::<Value>(&half.body).is_err());
    assert_eq!(export.running.stats().pages_served, 0);
}

#[tokio::test]
async fn compressed_pages_are_whole_or_lack_their_end() {
    for (fault, whole) in
        [("gzip", true), ("gzip@1", true), ("gzip-chunked@1", true), ("truncated-gzip@1", false)]
    {
        let export = Export::with_faults(300, fault).await;
        let packed = export.page("", "").await;
        assert_eq!((packed.header("content-encoding"), packed.complete), (Some("gzip"), true), "{fault}");
        let mut text = String::new();
        let read = GzDecoder::new(packed.body.as_slice()).read_to_string(&mut text);
        assert_eq!(read.is_ok(), whole, "{fault}");
        assert_eq!(packed.header("content-length").is_none(), fault == "gzip-chunked@1", "{fault}");
        if whole {
            assert_eq!(ids(&serde_json::from_str(&text).unwrap()), export.ids()[..100]);
        }
    }
}

#[tokio::test]
async fn slow_and_stalled_answers_are_whole_in_the_end() {
    for fault in ["slow@1:30", "stall@1:30"] {
        let (late, again) = first_and_again(fault).await;
        assert!(is_page(&late), "{fault}");
        assert_eq!(late.body, again.body, "{fault}");
    }
}

#[tokio::test]
async fn a_page_can_be_much_too_large() {
    let (huge, _) = first_and_again("huge@1:3000000").await;
    assert_eq!(huge.body.len(), 3_000_000);
    assert!(huge.body.starts_with(br#"{"data":["#));
    let export = Export::with_faults(300, "over-limit@1").await;
    let page = export.page("limit=20", "").await.json();
    assert_eq!((records(&page).len(), &page["meta"]["limit"]), (200, &json!(20)));
}

#[tokio::test]
async fn cursors_repeat_ring_contradict_and_vanish_by_name() {
    let faults = "repeat-cursor@3,ring@5,empty-cursor@6,null-cursor@7,cursor-without-more@8,no-cursor@9,no-meta@10,no-data@11";
    let export = Export::with_faults(500, faults).await;
    let page = async |cursor: &str| export.page("", cursor).await.json();
    let first = next_cursor(&page("").await).unwrap();
    let second = next_cursor(&page(&first).await).unwrap();
    let repeated = page(&second).await;
    assert_eq!((next_cursor(&repeated), records(&repeated).len()), (Some(second.clone()), 100));
    let third = next_cursor(&page(&second).await).unwrap();
    assert_ne!(third, second);
    assert_eq!(next_cursor(&page(&third).await).as_ref(), Some(&first), "a ring");
    let mut metas = Vec::new();
    for _ in 6..=10 {
        metas.push(page(&third).await["meta"].clone());
    }
    assert_eq!((&metas[0]["next_cursor"], &metas[0]["has_more"]), (&json!(""), &json!(true)));
    assert_eq!((&metas[1]["next_cursor"], &metas[1]["has_more"]), (&json!(null), &json!(true)));
    assert_eq!((metas[2]["next_cursor"].is_string(), &metas[2]["has_more"]), (true, &json!(false)));
    assert_eq!((metas[3].get("next_cursor"), &metas[3]["has_more"]), (None, &json!(true)));
    assert_eq!(metas[4], Value::Null);
    let without = page(&third).await;
    assert!(without.get("data").is_none() && without["meta"]["next_cursor"].is_string());
}

#[tokio::test]
async fn a_repeated_first_page_gives_a_cursor_of_the_beginning() {
    let export = Export::with_faults(500, "repeat-cursor@1").await;
    let first = export.page("", "").await.json();
    let again = export.page("", &next_cursor(&first).unwrap()).await.json();
    assert_eq!(ids(&again), ids(&first));
}

#[tokio::test]
async fn empty_and_short_pages_lose_nothing() {
    let export = Export::with_faults(250, "empty-page@2x2,short-page@4").await;
    let pages = export.pages("limit=100").await;
    let sizes: Vec<usize> = pages.iter().map(|page| records(page).len()).collect();
    assert_eq!(sizes, [100, 0, 0, 50, 100]);
    let cursors: Vec<_> = pages.iter().filter_map(next_cursor).collect();
    assert_eq!(cursors.iter().collect::<std::collections::HashSet<_>>().len(), 4, "no cursor comes twice");
    assert_eq!(pages.iter().flat_map(ids).collect::<Vec<_>>(), export.ids());
}

#[tokio::test]
async fn a_cursor_expires_once_or_for_ever_or_with_all_others() {
    let expired = |code: &str| json!({"error": {"field": "cursor", "code": code}});
    let faults = "expired-once@2,expired@4:EXPIRED_PAGE_TOKEN,expired-all@8";
    let export = Export::with_faults(500, faults).await;
    let first = next_cursor(&export.page("", "").await.json()).unwrap();
    let once = export.page("", &first).await;
    assert_eq!((once.status, once.json()), (400, expired("EXPIRED")));
    let second = next_cursor(&export.page("", &first).await.json()).unwrap();
    for _ in 4..=6 {
        assert_eq!(export.page("", &second).await.json(), expired("EXPIRED_PAGE_TOKEN"), "for ever");
    }
    assert_eq!(export.page("", &first).await.status, 200, "another cursor is alive");
    for cursor in [&first, &second, &first] {
        assert_eq!(export.page("", cursor).await.status, 400, "all are dead");
    }
    assert_eq!(export.page("", &first).await.json(), expired("EXPIRED"));
    let after = &export.ids()[199];
    let anchored = export.get(&format!("/wallet-logs?after_id={after}")).await.json();
    assert_eq!(ids(&anchored), export.ids()[200..300]);
    let fresh = next_cursor(&export.page("", "").await.json()).unwrap();
    assert_ne!(fresh, first);
    assert_eq!(ids(&export.page("", &fresh).await.json()), export.ids()[100..200]);
}

#[tokio::test]
async fn an_expiry_passes_over_a_request_without_a_cursor() {
    for fault in ["expired-once@1", "expired@1"] {
        assert!(is_page(&first_and_again(fault).await.0), "{fault}");
    }
}

#[tokio::test]
async fn a_stateful_cursor_is_always_the_same_and_a_page_that_broke_off_comes_again() {
    let export = Export::with_faults(350, "stateful-cursor,cut@3,500@4").await;
    let (mut met, mut cursors) = (Vec::new(), Vec::new());
    let mut page = export.page("", "").await;
    for _ in 0..10 {
        if page.status == 200 && page.complete {
            met.extend(ids(&page.json()));
            let Some(cursor) = next_cursor(&page.json()) else { break };
            cursors.push(cursor);
        }
        page = export.page("", &cursors[0]).await;
    }
    assert_eq!(met, export.ids());
    assert_eq!(cursors.len(), 3);
    assert!(cursors.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(export.page("", "other").await.status, 400);
}

#[tokio::test]
async fn the_end_may_be_an_empty_page_that_leads_nowhere_or_to_itself() {
    let export = Export::with_faults(200, "trailing-empty-page").await;
    let pages = export.pages("limit=100").await;
    let sizes: Vec<usize> = pages.iter().map(|page| records(page).len()).collect();
    assert_eq!(sizes, [100, 100, 0]);
    assert_eq!(pages[1]["meta"]["has_more"], true);

    let export = Export::with_faults(200, "stalled-end").await;
    let mut cursor = String::new();
    for size in [100, 100] {
        let page = export.page("limit=100", &cursor).await.json();
        assert_eq!((records(&page).len(), page["meta"].get("has_more")), (size, None));
        cursor = next_cursor(&page).unwrap();
    }
    for _ in 0..2 {
        let page = export.page("limit=100", &cursor).await.json();
        assert_eq!((records(&page).len(), next_cursor(&page).as_ref()), (0, Some(&cursor)));
    }
}

#[tokio::test]
async fn a_token_ends_by_itself_or_while_the_client_waits() {
    for (fault, status) in [("token-expires@2", 401), ("429-expire@2", 429)] {
        let export = Export::with_faults(300, fault).await;
        assert!(is_page(&export.page("", "").await), "{fault}");
        assert_eq!(export.page("", "").await.status, status, "{fault}");
        assert_eq!(export.page("", "").await.status, 401, "{fault}: until it is renewed");
        let renewed = export.running.renew_token();
        let page = export.try_ask("GET", "/wallet-logs", &renewed).await.unwrap();
        assert!(is_page(&page), "{fault}");
    }
}

#[tokio::test]
async fn a_bad_page_is_refused_for_ever_and_the_others_are_not() {
    let export = Export::with_faults(400, "bad-page@250").await;
    let mut cursor = String::new();
    for _ in 0..2 {
        cursor = next_cursor(&export.page("limit=100", &cursor).await.json()).unwrap();
    }
    for _ in 0..3 {
        let refused = export.page("limit=100", &cursor).await;
        assert_eq!((refused.status, &refused.json()["error"]["field"]), (400, &json!("page")));
    }
    assert_eq!(export.page("limit=50", &cursor).await.status, 200, "a smaller page ends before it");
    let after = &export.ids()[250];
    assert_eq!(export.get(&format!("/wallet-logs?after_id={after}")).await.status, 200);
}
