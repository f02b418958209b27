//! Answers of Bitly that were met in the wild or must be feared, one by one.

use std::sync::Arc;
use std::time::SystemTime;

use crossdock_vendors::Surroundings;
use crossdock_vendors::bitly::{Bitly, BitlyMapper, BitlyOptions, LinkCount};
use engine::{Cursor, Page, PartitionSpec, Position, Source, SourceError};
use imports::Token;
use imports::{Incoming, Mapper};
use upstream::testing::{FixedChance, TestClock};

use crate::canned::{Canned, Server};

const OK: &str = "200 OK\r\nContent-Type: application/json";
const END: &str = r#""pagination":{"next":"","search_after":"","size":100}"#;

async fn bitly(answers: Vec<Canned>) -> (Server, TestClock, Bitly) {
    let server = Server::start(answers).await;
    let clock = TestClock::at(SystemTime::now());
    let mut options = BitlyOptions::new(Token::new("t"));
    options.base_url = server.base_url.clone();
    let surroundings = Surroundings {
        clock: Some(Arc::new(clock.clone())),
        chance: Some(Arc::new(FixedChance(1.0))),
        observe: None,
    };
    let bitly = Bitly::new(options, surroundings).unwrap();
    (server, clock, bitly)
}

async fn page_at(answers: Vec<Canned>, at: &Position) -> (Result<Page, SourceError>, u64) {
    let (_server, clock, bitly) = bitly(answers).await;
    let partition = PartitionSpec { key: "B1".to_owned(), expected: None, left_out: None, closing: false };
    (bitly.page(&partition, at).await, clock.elapsed().as_secs())
}

fn list(head: &'static str, body: impl Into<Vec<u8>>) -> Canned {
    ("/groups/B1/bitlinks", head, body.into())
}

fn end(links: &str) -> String {
    format!(r#"{{"links":[{links}],{END}}}"#)
}

#[tokio::test]
async fn a22_a_403_with_the_header_of_a_limit_is_a_limit() {
    for refusal in [
        list("403 Forbidden\r\nX-Ratelimit-Reason: too many", r#"{"message":"FORBIDDEN"}"#),
        list("403 Forbidden", r#"{"message":"RATE_LIMIT_EXCEEDED"}"#),
        list("403 Forbidden", r#"{"status_code":403,"status_txt":"RATE_LIMIT_EXCEEDED","data":null}"#),
        list("429 Too Many Requests", "slow down"),
        list("429 Too Many Requests", ""),
    ] {
        let (page, waited) = page_at(vec![refusal, list(OK, end(""))], &Position::Beginning).await;
        assert_eq!(page.unwrap().retries, 1);
        assert!((60..=62).contains(&waited), "{waited} s");
    }
}

#[tokio::test]
async fn a_limit_of_the_month_is_told_by_its_message_whatever_else_the_body_holds() {
    for (head, body) in [
        ("429 Too Many Requests", r#"{"message":"MONTHLY_LIMIT_EXCEEDED","errors":"none","description":7}"#),
        ("403 Forbidden", r#"{"status_txt":"MONTHLY_RATE_LIMIT_EXCEEDED"}"#),
    ] {
        let (page, waited) = page_at(vec![list(head, body)], &Position::Beginning).await;
        let error = page.unwrap_err();
        let SourceError::WaitUntil { until, .. } = error else { panic!("{error:?}") };
        let first = time::OffsetDateTime::from_unix_timestamp(until.seconds()).unwrap();
        assert_eq!((first.day(), first.hour(), waited), (1, 0, 0), "{body}");
    }
}

#[tokio::test]
async fn f81_a_limit_that_names_no_wait_to_be_believed_is_waited_for_a_minute_each_time() {
    let (long_ago, a_year) = ("Retry-After: Fri, 07 Sep 2018 21:00:00 GMT", "Retry-After: 31536000");
    for header in [
        "X-Other: none",
        long_ago,
        a_year,
        "Retry-After: 1536354000",
        "Retry-After: 1536354000000",
        "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
        "Retry-After: Fri, 07 Sep 99999 21:00:00 GMT",
        "Retry-After: 99999999999999999999",
        "Retry-After: 999999999",
        "Retry-After: 0",
        "Retry-After: -3",
        "Retry-After: soon",
        "Retry-After:",
    ] {
        let head: &'static str = format!("429 Too Many Requests\r\n{header}").leak();
        let limited = || list(head, r#"{"message":"RATE_LIMIT_EXCEEDED"}"#);
        let answers = vec![limited(), limited(), limited(), limited(), limited(), list(OK, end(""))];
        let (page, waited) = page_at(answers, &Position::Beginning).await;
        assert_eq!(page.unwrap_or_else(|error| panic!("{header}: {error}")).retries, 5, "{header}");
        assert!((300..=305).contains(&waited), "{header}: {waited} s");
    }
}

#[tokio::test]
async fn a9_only_a_refusal_that_names_the_cursor_says_that_it_is_dead() {
    let cursor = Position::At(Cursor::new("x").unwrap());
    for (head, body, is_dead) in [
        ("400 Bad Request", r#"{"message":"INVALID_ARG_SEARCH_AFTER"}"#, true),
        (
            "422 Unprocessable",
            r#"{"message":"X","errors":[{"field":"search_after","error_code":"invalid"}]}"#,
            true,
        ),
        ("400 Bad Request", r#"{"message":"INVALID_ARG_SIZE","errors":[{"field":"size"}]}"#, false),
        ("422 Unprocessable", "", false),
    ] {
        let error = page_at(vec![list(head, body)], &cursor).await.0.unwrap_err();
        assert_eq!(matches!(error, SourceError::CursorExpired(_)), is_dead, "{error:?}");
        let error = page_at(vec![list(head, body)], &Position::Beginning).await.0.unwrap_err();
        assert!(matches!(error, SourceError::Refused(_)), "no cursor was sent: {error:?}");
    }
}

#[tokio::test]
async fn b19_the_end_needs_both_signs_and_a_contradiction_is_an_error() {
    for (pagination, said) in [
        (r#"{"next":"https://h/","search_after":""}"#, "contradict"),
        (r#"{"next":"","search_after":"x"}"#, "contradict"),
        (r#"{"next":"","search_after":null}"#, "search_after"),
        (r#"{"search_after":""}"#, "pagination.next"),
        ("null", "without `pagination`"),
    ] {
        let body = format!(r#"{{"links":[],"pagination":{pagination}}}"#);
        let error = page_at(vec![list(OK, body)], &Position::Beginning).await.0.unwrap_err();
        let SourceError::Malformed(text) = error else { panic!("{error:?}") };
        assert!(text.contains(said), "{text}");
    }
}

#[tokio::test]
async fn e63_f74_a_page_that_is_no_utf8_is_handed_on_as_bytes() {
    let mut body = b"\xef\xbb\xbf{\"links\":[{\"id\":\"h/a\",\"title\":\"\xff\"},".to_vec();
    body.extend_from_slice(
        format!(r#"{{"id":"h/b","long_url":"https://b.example/","title":"7" {{x"}}],{END}}}"#).as_bytes(),
    );
    let page = page_at(vec![list(OK, body)], &Position::Beginning).await.0.unwrap();
    assert_eq!(page.records.len(), 2);
    assert_eq!(BitlyMapper.map(&page.records[0]).unwrap_err().reason.code, "invalid_utf8");
    let Ok(Incoming::Link(link)) = BitlyMapper.map(&page.records[1]) else { panic!("mended") };
    assert_eq!(link.title.as_deref(), Some("7\" {x"));
}

#[tokio::test]
async fn an_odd_quote_does_not_make_a_page_look_cut() {
    for title in [r#"7" {single"#, r#"a "b" {c"#, r#"["#, "\u{1}\"{["] {
        let body = end(&format!(
            r#"{{"id":"h/a","title":"{title}","long_url":"https://a.example/"}},{{"id":"h/b"}}"#
        ));
        let page = page_at(vec![list(OK, body)], &Position::Beginning).await.0.unwrap();
        assert_eq!((page.records.len(), page.retries), (2, 0), "{title}");
    }
}

#[tokio::test]
async fn a_cursor_that_no_job_can_store_is_an_error() {
    let body =
        format!(r#"{{"links":[],"pagination":{{"next":"/x","search_after":"{}"}}}}"#, "x".repeat(20_000));
    let error = page_at(vec![list(OK, body)], &Position::Beginning).await.0.unwrap_err();
    assert!(matches!(error, SourceError::Malformed(_)), "{error:?}");
}

#[tokio::test]
async fn a_survey_lives_without_what_a_plan_does_not_tell() {
    let groups = r#"{"groups":[{"guid":"B2","name":null,"is_active":true},{"guid":"B1","bsds":[],"organization_guid":"O1"}]}"#;
    let total = r#"{"links":[],"pagination":{"next":"/x","search_after":"x","total":12345}}"#;
    let answers = vec![
        ("/v4/groups", OK, groups.into()),
        list(OK, total),
        ("/v4/user", "403 Forbidden", Vec::new()),
        ("/user/platform_limits", OK, br#"{"platform_limits":[]}"#.to_vec()),
        ("/O1/plan_limits", OK, b"[]".to_vec()),
    ];
    let (_server, _clock, bitly) = bitly(answers).await;
    let survey = bitly.survey().await.unwrap();
    assert_eq!((survey.login, survey.list_limit, survey.monthly_limit), (None, None, None));
    let links: Vec<(&str, LinkCount)> =
        survey.groups.iter().map(|group| (group.guid.as_str(), group.links)).collect();
    assert_eq!(links, [("B1", LinkCount::Exact(12_345)), ("B2", LinkCount::Unknown)]);
    assert_eq!(survey.calls.calls, 1 + 124 + 1);
    assert!(survey.calls.to_string().starts_with("at least 126 API calls"));
}

#[tokio::test]
async fn groups_that_make_no_sense_are_an_error() {
    for body in [r#"{"groups":null}"#, r#"{"groups":[{"name":"x"}]}"#, "{}", "[]"] {
        let (_server, _clock, bitly) = bitly(vec![("/v4/groups", OK, body.into())]).await;
        let error = bitly.partitions().await.unwrap_err();
        assert!(matches!(error, SourceError::Malformed(_)), "{body}: {error:?}");
    }
}
