//! The credential: asked for afresh, sent to one place, shown nowhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use crossdock_upstream::testing::TestClock;
use crossdock_upstream::{Clock as _, Credentials, Error, FixedHeader, HeaderName, HeaderValue, StatusCode};

use crate::server::{Script, Server};
use crate::{NOW_EPOCH_SECONDS, builder, clock};

const TOKEN: &str = "tok-5ecr3t+/=";

/// A token that changes with the hour, and with each refresh.
struct Rotating {
    clock: TestClock,
    refreshes: AtomicUsize,
    ends_after: Duration,
}

#[async_trait]
impl Credentials for Rotating {
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        let age = if self.clock.monotonic() < self.ends_after { "young" } else { "renewed" };
        let value = format!("Bearer {age}-{}", self.refreshes.load(Ordering::SeqCst));
        Ok(Some((HeaderName::from_static("authorization"), HeaderValue::from_str(&value).unwrap())))
    }

    async fn refresh(&self) -> Result<(), String> {
        self.refreshes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

fn rotating(clock: &TestClock, ends_after: u64) -> Arc<Rotating> {
    let ends_after = Duration::from_secs(ends_after);
    Arc::new(Rotating { clock: clock.clone(), refreshes: AtomicUsize::new(0), ends_after })
}

fn sent(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.header("authorization").unwrap_or("none").to_owned()).collect()
}

#[tokio::test]
async fn row_83_a_credential_that_ends_during_a_wait_is_read_afresh() {
    let server =
        Server::playing(vec![Script::answer("429 X", &[("Retry-After", "120")], ""), Script::ok("{}")]).await;
    let clock = clock();
    let client = builder(&server.base, &clock).credentials(rotating(&clock, 60)).build().unwrap();
    client.get("links", &[]).await.unwrap();
    assert_eq!(sent(&server), ["Bearer young-0", "Bearer renewed-0"]);
}

#[tokio::test]
async fn row_84_one_401_refreshes_once_and_asks_for_the_same_page_again() {
    let server = Server::playing(vec![
        Script::answer("401 Unauthorized", &[], "expired"),
        Script::answer("503 X", &[], ""),
        Script::ok("{}"),
    ])
    .await;
    let clock = clock();
    let credentials = rotating(&clock, 9_999);
    let client = builder(&server.base, &clock).credentials(Arc::clone(&credentials)).build().unwrap();
    let answer = client.get("links", &[("page", "500")]).await.unwrap();
    assert_eq!(answer.attempts, 3);
    assert_eq!(sent(&server), ["Bearer young-0", "Bearer young-1", "Bearer young-1"]);
    assert!(server.seen().iter().all(|seen| seen.target() == "/v4/links?page=500"));
    assert_eq!(clock.sleeps().len(), 1, "the refresh itself waits for nothing");
}

#[tokio::test]
async fn row_84_a_second_401_ends_the_request() {
    for script in
        [Script::answer("401 X", &[], "Unauthorized"), Script::raw("401 X", &[("Content-Length", "9")], "")]
    {
        let server = Server::playing(vec![script]).await;
        let clock = clock();
        let credentials = rotating(&clock, 9_999);
        let client = builder(&server.base, &clock).credentials(Arc::clone(&credentials)).build().unwrap();
        let error = client.get("links", &[]).await.unwrap_err();
        assert!(matches!(error, Error::Unauthorized { status: StatusCode::UNAUTHORIZED, .. }), "{error}");
        assert!(!error.is_temporary());
        assert_eq!((server.requests(), credentials.refreshes.load(Ordering::SeqCst)), (2, 1));
    }
}

/// A credential that somebody replaces.
#[derive(Clone)]
struct Replaceable(Arc<parking_lot::Mutex<String>>);

#[async_trait]
impl Credentials for Replaceable {
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        let value = HeaderValue::from_str(&self.0.lock()).unwrap();
        Ok(Some((HeaderName::from_static("authorization"), value)))
    }
}

#[tokio::test]
async fn row_84_a_credential_replaced_while_its_refusal_is_on_the_way_is_asked_with_once() {
    for is_good in [true, false] {
        let credential = Replaceable(Arc::new(parking_lot::Mutex::new("old".to_owned())));
        let server = Server::answering({
            let credential = credential.clone();
            move |seen| {
                if is_good && seen.number == 2 {
                    return Script::ok("{}");
                }
                if seen.number > 0 {
                    *credential.0.lock() = format!("new-{}", seen.number);
                }
                Script::answer("401 X", &[], "Unauthorized")
            }
        })
        .await;
        let client = builder(&server.base, &clock()).credentials(credential).build().unwrap();
        let answer = client.get("links", &[]).await;
        assert_eq!(sent(&server), ["old", "old", "new-1"]);
        match answer {
            Ok(answer) => assert!(is_good && answer.attempts == 3),
            Err(error) => assert!(!is_good && matches!(error, Error::Unauthorized { .. }), "{error}"),
        }
    }
}

struct Failing;

#[async_trait]
impl Credentials for Failing {
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        Err("the command `pass show api` failed".to_owned())
    }
}

#[tokio::test]
async fn without_a_credential_nothing_is_sent() {
    let server = Server::playing(vec![Script::ok("{}")]).await;
    let client = builder(&server.base, &clock()).credentials(Failing).build().unwrap();
    let error = client.get("links", &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "no credential to ask with: the command `pass show api` failed");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn no_error_and_no_debug_output_holds_the_credential() {
    let encoded = "tok-5ecr3t%2B%2F%3D";
    let echo = format!("you sent Bearer {TOKEN}, that is {TOKEN} or {encoded}");
    let moment = (NOW_EPOCH_SECONDS + 5_000).to_string();
    let scripts = [
        Script::ok(&echo),
        Script::answer("400 X", &[], &echo),
        Script::answer("401 X", &[], &echo),
        Script::answer("429 X", &[], &echo),
        Script::answer("429 X", &[("Retry-After", &moment)], &echo),
        Script::answer("500 X", &[], &echo),
        Script::raw("200 X", &[("Content-Length", "5000")], &echo),
        Script::answer("302 X", &[("Location", "https://evil.example/?access_token=tok-5ecr3t")], ""),
        Script::bytes(format!("{TOKEN}\r\n\r\n")),
    ];
    for script in scripts {
        let server = Server::playing(vec![script]).await;
        let client =
            builder(&server.base, &clock()).credentials(FixedHeader::bearer(TOKEN).unwrap()).build().unwrap();
        let error = client.get_json("links", &[]).await.unwrap_err();
        let everything = format!("{error} {error:?} {client:?}");
        assert!(!everything.contains("5ecr3t"), "{everything}");
        assert_eq!(server.seen()[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    }
    let server = Server::playing(vec![Script::answer("200 X", &[("X-Echo", TOKEN)], "{}")]).await;
    let client =
        builder(&server.base, &clock()).credentials(FixedHeader::bearer(TOKEN).unwrap()).build().unwrap();
    let answer = client.get_json("links", &[("api_token", "tok-5ecr3t")]).await.unwrap();
    assert!(!format!("{answer:?}").contains("5ecr3t"), "{answer:?}");
}
