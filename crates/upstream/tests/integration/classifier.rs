//! What a source knows about its answers.

use std::time::{Duration, SystemTime};

use crossdock_upstream::{Client, Error, Reply, StatusCode, Verdict};

use crate::server::{Script, Server};
use crate::{NOW_DATE, builder, clock, seconds};

fn says(reply: &Reply<'_>, word: &str) -> bool {
    String::from_utf8_lossy(reply.body).contains(word)
}

fn judge(reply: &Reply<'_>) -> Verdict {
    let minute = Some(Duration::from_secs(60));
    match reply.status.as_u16() {
        403 if says(reply, "RATE_LIMIT_EXCEEDED") => {
            Verdict::RateLimited { after: minute, reason: "RATE_LIMIT_EXCEEDED".to_owned() }
        }
        429 if says(reply, "API_USAGE_LIMIT_EXCEEDED") => Verdict::WaitUntil {
            until: reply.local_now + Duration::from_secs(86_400),
            reason: "the month's calls are used up".to_owned(),
        },
        200 if says(reply, "THROTTLED") => {
            Verdict::RateLimited { after: None, reason: "THROTTLED".to_owned() }
        }
        200 if says(reply, "broken") => Verdict::Retry { after: None, reason: "a broken page".to_owned() },
        200 if says(reply, "forbidden") => Verdict::Fatal { reason: "this account may not".to_owned() },
        200 if says(reply, "login") => Verdict::Unauthorized,
        404 if says(reply, "not_found") => Verdict::Ok,
        _ => Verdict::Default,
    }
}

async fn server_and_client(scripts: Vec<Script>) -> (Server, Client, crossdock_upstream::testing::TestClock) {
    let server = Server::playing(scripts).await;
    let clock = clock();
    let client = builder(&server.base, &clock).classify(judge).build().unwrap();
    (server, client, clock)
}

#[tokio::test]
async fn a_403_can_be_a_rate_limit() {
    let refusal = Script::answer("403 Forbidden", &[], r#"{"message":"RATE_LIMIT_EXCEEDED"}"#);
    let (_server, client, clock) = server_and_client(vec![refusal, Script::ok("{}")]).await;
    assert_eq!(client.get_json("links", &[]).await.unwrap().attempts, 2);
    assert_eq!(clock.sleeps(), seconds(&[60.5]));
    let plain = Script::answer("403 Forbidden", &[], r#"{"message":"FORBIDDEN"}"#);
    let (server, client, _) = server_and_client(vec![plain]).await;
    let error = client.get_json("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Status { status: StatusCode::FORBIDDEN, .. }), "{error}");
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_429_can_be_the_end_of_the_months_quota() {
    let refusal = Script::answer("429 X", &[], r#"{"message":"API_USAGE_LIMIT_EXCEEDED"}"#);
    let (server, client, clock) = server_and_client(vec![refusal]).await;
    let now: SystemTime = crossdock_upstream::Clock::now(&clock);
    let error = client.get_json("links", &[]).await.unwrap_err();
    let Error::WaitUntil { until, ref reason, .. } = error else { panic!("{error}") };
    assert_eq!(until, now + Duration::from_secs(86_400));
    assert_eq!(reason, "the month's calls are used up");
    assert_eq!((server.requests(), clock.sleeps().len()), (1, 0));
    assert!(error.to_string().contains("Sat, 08 Sep 2029"), "{error}");
}

#[tokio::test]
async fn row_77_a_throttle_inside_a_200_backs_off_and_is_no_page() {
    let throttled = Script::ok(r#"{"errors":[{"extensions":{"code":"THROTTLED"}}]}"#);
    let (_server, client, clock) =
        server_and_client(vec![throttled.clone(), Script::ok(r#"{"data":[]}"#)]).await;
    let answer = client.get_json("links", &[]).await.unwrap();
    assert_eq!((answer.body.as_ref(), answer.attempts), (&br#"{"data":[]}"#[..], 2));
    assert_eq!(clock.sleeps(), seconds(&[0.5]));
    let (server, client, _) = server_and_client(vec![throttled]).await;
    let error = client.get_json("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::RateLimited { attempts: 6, .. }), "{error}");
    assert_eq!(server.requests(), 6);
}

#[tokio::test]
async fn a_200_can_be_temporary_final_or_a_refused_credential() {
    let (server, client, _) = server_and_client(vec![Script::ok(r#"{"is":"broken"}"#)]).await;
    let error = client.get_json("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { status: StatusCode::OK, attempts: 6, .. }), "{error}");
    assert_eq!(server.requests(), 6);

    let (server, client, _) = server_and_client(vec![Script::ok(r#"{"is":"forbidden"}"#)]).await;
    let error = client.get_json("links", &[]).await.unwrap_err();
    assert!(error.to_string().contains("this account may not"), "{error}");
    assert_eq!(server.requests(), 1);

    let (server, client, _) = server_and_client(vec![Script::ok("<form>login</form>")]).await;
    let error = client.get_json("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { status: StatusCode::OK, .. }), "{error}");
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_refusal_can_be_data_if_it_is_whole() {
    let body = r#"{"error":{"code":"not_found"}}"#;
    let (_server, client, _) = server_and_client(vec![Script::answer("404 X", &[], body)]).await;
    let answer = client.get_json("links", &[]).await.unwrap();
    assert_eq!((answer.status, answer.body.as_ref()), (StatusCode::NOT_FOUND, body.as_bytes()));
    let cut = Script::raw("404 X", &[("Content-Length", "500")], body);
    let (server, client, _) = server_and_client(vec![cut]).await;
    let error = client.get_json("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }), "{error}");
    assert_eq!(server.requests(), 6);
}

#[tokio::test]
async fn a_classifier_is_told_the_servers_time() {
    let server = Server::playing(vec![Script::answer("400 X", &[("Date", NOW_DATE)], "")]).await;
    let clock = crossdock_upstream::testing::TestClock::at(SystemTime::UNIX_EPOCH);
    let client = builder(&server.base, &clock)
        .classify(|reply: &Reply<'_>| {
            let seconds = reply.server_now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            assert_eq!(reply.local_now, SystemTime::UNIX_EPOCH);
            Verdict::Fatal { reason: format!("told {seconds}") }
        })
        .build()
        .unwrap();
    let error = client.get("links", &[]).await.unwrap_err();
    assert!(error.to_string().contains(&format!("told {}", crate::NOW_EPOCH_SECONDS)), "{error}");
}

#[tokio::test]
async fn row_81_a_source_knows_whether_an_answer_names_a_wait_that_can_be_kept() {
    let judge = |reply: &Reply<'_>| match reply.status.as_u16() {
        429 => Verdict::RateLimited {
            after: reply.asked_wait().or(Some(Duration::from_secs(60))),
            reason: "slow down".to_owned(),
        },
        _ => Verdict::Default,
    };
    for (value, expected) in [
        ("7", 7.35),
        ("Fri, 07 Sep 2029 21:00:30 GMT", 90.5),
        ("Fri, 07 Sep 2029 20:00:00 GMT", 60.5),
        ("Fri, 07 Sep 99999 21:00:00 GMT", 60.5),
        ("99999999999999999999", 60.5),
        ("999999999", 60.5),
        ("0", 60.5),
        ("soon", 60.5),
    ] {
        let refusal = Script::answer("429 X", &[("Date", NOW_DATE), ("Retry-After", value)], "");
        let server = Server::playing(vec![refusal, Script::ok("{}")]).await;
        let clock = clock();
        let client = builder(&server.base, &clock).classify(judge).build().unwrap();
        client.get_json("links", &[]).await.unwrap();
        assert_eq!(clock.sleeps(), seconds(&[expected]), "{value}");
    }
}
