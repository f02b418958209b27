//! What is asked again, how often, and after which wait.

use std::time::Duration;

use crossdock_upstream::{Broken, Client, Error, Options, RetryPolicy, StatusCode, Url};
use parking_lot::Mutex;
use std::sync::Arc;

use crate::server::{Script, Server};
use crate::{builder, client, clock, impatient, in_time, seconds};

#[tokio::test]
async fn temporary_statuses_are_asked_six_times_with_growing_waits() {
    for status in
        ["500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"]
    {
        let server = Server::playing(vec![Script::answer(status, &[], "<html>try later</html>")]).await;
        let clock = clock();
        let error = client(&server.base, &clock).get("links", &[]).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { attempts: 6, .. }), "{error}");
        assert!(error.to_string().contains(&status[..3]), "{error}");
        assert!(error.is_temporary());
        assert_eq!(server.requests(), 6, "{status}");
        assert_eq!(clock.sleeps(), seconds(&[0.5, 1.0, 2.0, 4.0, 8.0]), "{status}");
    }
}

#[tokio::test]
async fn row_87_a_permanent_refusal_is_asked_once() {
    for status in ["400", "402", "403", "404", "405", "408", "409", "410", "422", "501", "304"] {
        let script = Script::answer(&format!("{status} X"), &[], r#"{"message":"INVALID_ARG"}"#);
        let server = Server::playing(vec![script]).await;
        let clock = clock();
        let error = client(&server.base, &clock).get("links", &[("page", "7")]).await.unwrap_err();
        let Error::Status { status: found, ref url, .. } = error else { panic!("{status}: {error}") };
        assert_eq!(found.as_str(), status);
        assert!(url.ends_with("/v4/links?page=7"), "{url}");
        assert!(!error.is_temporary());
        assert_eq!((server.requests(), clock.sleeps().len()), (1, 0), "{status}");
    }
}

#[tokio::test]
async fn as_many_retries_as_the_policy_says() {
    for max_retries in [0, 1, 2] {
        let server = Server::playing(vec![Script::answer("500 X", &[], "")]).await;
        let retry = RetryPolicy { max_retries, ..RetryPolicy::default() };
        let options = Options { retry, ..Options::default() };
        let client = builder(&server.base, &clock()).options(options).build().unwrap();
        client.get("links", &[]).await.unwrap_err();
        assert_eq!(server.requests(), max_retries as usize + 1);
        assert_eq!(client.stats().retries, u64::from(max_retries));
    }
}

#[tokio::test]
async fn nobody_listening_is_a_broken_transport() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let clock = clock();
    let error = client(&format!("http://{unused}"), &clock).get("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Transport { kind: Broken::Connect, attempts: 6, .. }), "{error}");
    assert_eq!(clock.sleeps().len(), 5);
}

#[tokio::test]
async fn a_reset_before_the_head_is_a_broken_transport() {
    let server = Server::playing(vec![Script::bytes("").then_reset(), Script::ok("{}")]).await;
    let answer = client(&server.base, &clock()).get("links", &[]).await.unwrap();
    assert_eq!(answer.attempts, 2);
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_with_a_timeout_and_is_asked_again() {
    let server =
        Server::playing(vec![Script::bytes("HTTP/1.1 200 OK\r\n").then_silence(), Script::ok("{}")]).await;
    let client = builder(&server.base, &clock()).options(impatient()).build().unwrap();
    assert_eq!(in_time(client.get("links", &[])).await.unwrap().attempts, 2);

    let server = Server::playing(vec![Script::bytes("").then_silence()]).await;
    let retry = RetryPolicy { max_retries: 1, ..RetryPolicy::default() };
    let options = Options {
        read_timeout: Duration::from_secs(30),
        attempt_timeout: Duration::from_millis(80),
        retry,
        ..impatient()
    };
    let client = builder(&server.base, &clock()).options(options).build().unwrap();
    let error = in_time(client.get("links", &[])).await.unwrap_err();
    assert!(matches!(error, Error::Transport { kind: Broken::Timeout, attempts: 2, .. }), "{error}");
}

#[tokio::test]
async fn each_retry_is_told_to_the_observer_before_its_wait() {
    let server = Server::playing(vec![
        Script::answer("503 X", &[], "maintenance"),
        Script::answer("429 X", &[("Retry-After", "10")], "slow down"),
        Script::ok("{}"),
    ])
    .await;
    let told: Arc<Mutex<Vec<(String, Duration)>>> = Arc::default();
    let clock = clock();
    let client = builder(&server.base, &clock)
        .observe({
            let told = Arc::clone(&told);
            move |reason: &str, wait: Duration| told.lock().push((reason.to_owned(), wait))
        })
        .build()
        .unwrap();
    let answer = client.get("links", &[]).await.unwrap();
    let expected = vec![
        ("maintenance".to_owned(), Duration::from_millis(500)),
        ("slow down".to_owned(), Duration::from_millis(10_500)),
    ];
    assert_eq!(*told.lock(), expected);
    assert_eq!((answer.attempts, answer.elapsed), (3, Duration::from_secs(11)));
    let stats = client.stats();
    assert_eq!((stats.requests, stats.retries, stats.rate_limited), (3, 2, 1));
    assert_eq!(stats.waited, Duration::from_secs(11));
}

#[tokio::test]
async fn an_answer_with_an_unusual_success_is_data() {
    let server = Server::playing(vec![Script::answer("206 Partial Content", &[], "x")]).await;
    let answer = client(&server.base, &clock()).get("links", &[]).await.unwrap();
    assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT);
}

#[test]
fn clients_and_their_futures_can_be_shared_between_threads() {
    fn is_shareable<T: Send + Sync + Clone>(_: &T) {}
    fn is_movable<T: Send>(_: &T) {}
    let client = Client::builder(Url::parse("https://api.example").unwrap()).build().unwrap();
    is_shareable(&client);
    is_movable(&client.get("x", &[]));
}
