//! Refusals for asking too often: how long to wait, and who goes first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use crossdock_upstream::testing::SeededChance;
use crossdock_upstream::{Client, Error, Options, Pace, Url};
use futures_util::future::join_all;
use parking_lot::Mutex;

use crate::server::{Script, Server};
use crate::{NOW_DATE, NOW_EPOCH_SECONDS, builder, client, clock, seconds};

fn refused(headers: &[(&str, &str)]) -> Script {
    Script::answer("429 Too Many Requests", headers, r#"{"message":"RATE_LIMIT_EXCEEDED"}"#)
}

/// The wait between a refusal with these headers and the answer that follows it; the draw is one half.
async fn wait_after(refusal: Script) -> Vec<Duration> {
    let server = Server::playing(vec![refusal, Script::ok("{}")]).await;
    let clock = clock();
    let answer = client(&server.base, &clock).get("links", &[]).await.unwrap();
    assert_eq!(answer.attempts, 2);
    clock.sleeps()
}

#[tokio::test]
async fn row_79_a_date_in_retry_after_is_waited_for_on_the_servers_clock() {
    let day_ahead = "Sat, 08 Sep 2029 20:59:00 GMT";
    let two_minutes_later = "Sat, 08 Sep 2029 21:01:00 GMT";
    let waits = wait_after(refused(&[("Date", day_ahead), ("Retry-After", two_minutes_later)])).await;
    assert_eq!(waits, seconds(&[120.5]), "the server's clock is a day ahead of ours");
    let waits = wait_after(refused(&[("Retry-After", "Fri, 07 Sep 2029 21:00:00 GMT")])).await;
    assert_eq!(waits, seconds(&[60.5]), "without a Date ours counts");
}

#[tokio::test]
async fn row_79_a_date_far_ahead_ends_the_request_with_the_time_to_come_back() {
    let server = Server::playing(vec![refused(&[
        ("Date", "Fri, 07 Sep 2029 20:00:00 GMT"),
        ("Retry-After", "Fri, 07 Sep 2029 21:00:00 GMT"),
    ])])
    .await;
    let clock = clock();
    let error = client(&server.base, &clock).get("links", &[]).await.unwrap_err();
    let Error::WaitUntil { until, ref reason, .. } = error else { panic!("{error}") };
    assert_eq!(until, UNIX_EPOCH + Duration::from_secs(NOW_EPOCH_SECONDS + 3_600));
    assert!(reason.contains("RATE_LIMIT_EXCEEDED"), "{reason}");
    assert!(error.is_temporary());
    assert_eq!((server.requests(), clock.sleeps().len()), (1, 0));
}

#[tokio::test]
async fn row_81_absurd_values_neither_break_the_client_nor_eat_its_retries() {
    for value in ["99999999999999999999", "Fri, 07 Sep 99999 21:00:00 GMT", "soon", "-7", "0", "1e400"] {
        let server = Server::playing(vec![refused(&[("Date", NOW_DATE), ("Retry-After", value)])]).await;
        let clock = clock();
        let error = client(&server.base, &clock).get("links", &[]).await.unwrap_err();
        assert!(matches!(error, Error::RateLimited { attempts: 6, .. }), "{value}: {error}");
        assert_eq!(clock.sleeps(), seconds(&[0.5, 1.0, 2.0, 4.0, 8.0]), "{value}");
    }
}

#[tokio::test]
async fn retry_after_is_honoured_as_it_comes() {
    let in_thirty_seconds = (NOW_EPOCH_SECONDS + 30).to_string();
    let in_thirty_seconds_millis = format!("{in_thirty_seconds}000");
    for (value, expected) in [
        ("3", 3.15),
        ("0.4", 0.42),
        ("300", 300.5),
        (in_thirty_seconds.as_str(), 30.5),
        (in_thirty_seconds_millis.as_str(), 30.5),
    ] {
        let waits = wait_after(refused(&[("Date", NOW_DATE), ("Retry-After", value)])).await;
        assert_eq!(waits, seconds(&[expected]), "{value}");
    }
    let busy = Script::answer("503 X", &[("Retry-After", "7")], "");
    assert_eq!(wait_after(busy).await, seconds(&[7.35]), "a 503 may ask as well");
    let failed = Script::answer("500 X", &[("Retry-After", "7")], "");
    assert_eq!(wait_after(failed).await, seconds(&[0.5]), "a 500 may not");
}

#[tokio::test]
async fn a_wait_longer_than_five_minutes_is_for_the_caller() {
    let server = Server::playing(vec![refused(&[("Retry-After", "301")])]).await;
    let clock = clock();
    let error = client(&server.base, &clock).get("links", &[]).await.unwrap_err();
    let Error::WaitUntil { until, .. } = error else { panic!("{error}") };
    assert_eq!(until, UNIX_EPOCH + Duration::from_secs(NOW_EPOCH_SECONDS + 301));
    assert_eq!((server.requests(), clock.sleeps().len()), (1, 0));
}

#[tokio::test]
async fn waits_in_place_never_add_up_to_half_an_hour() {
    // Answers that come at once, and answers that use up the time of an attempt.
    for (answer_seconds, attempts) in [(0, 6), (120, 4)] {
        let clock = clock();
        let server = Server::answering({
            let clock = clock.clone();
            move |_| {
                clock.advance(Duration::from_secs(answer_seconds));
                refused(&[("Retry-After", "300")])
            }
        })
        .await;
        let error = client(&server.base, &clock).get("links", &[]).await.unwrap_err();
        let Error::WaitUntil { until, .. } = error else { panic!("{error}") };
        let now = crossdock_upstream::Clock::now(&clock);
        assert_eq!(until, now + Duration::from_secs(300), "the wait that is left is the caller's");
        assert_eq!(server.requests(), attempts);
        assert!(clock.elapsed() < Duration::from_secs(28 * 60), "{:?}", clock.elapsed());
    }
}

#[tokio::test]
async fn retries_end_with_the_patience_whatever_their_number() {
    let clock = clock();
    let server = Server::answering({
        let clock = clock.clone();
        move |_| {
            clock.advance(Duration::from_secs(10 * 60));
            Script::answer("500 X", &[], "")
        }
    })
    .await;
    let error = client(&server.base, &clock).get("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { attempts: 3, .. }), "{error}");
}

#[tokio::test]
async fn retry_after_on_a_good_answer_means_nothing() {
    let moment = format!("{}000", NOW_EPOCH_SECONDS + 30);
    let server = Server::playing(vec![Script::answer("200 OK", &[("Retry-After", &moment)], "{}")]).await;
    let clock = clock();
    let client = client(&server.base, &clock);
    client.get("links", &[]).await.unwrap();
    client.get("links", &[]).await.unwrap();
    assert_eq!(clock.sleeps().len(), 0);
}

#[tokio::test]
async fn row_85_workers_refused_together_send_one_probe_and_follow_it_one_by_one() {
    const WORKERS: usize = 8;
    let refusals = Arc::new(tokio::sync::Barrier::new(WORKERS));
    let inside = Arc::new(AtomicUsize::new(0));
    let beside_the_probe = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let (inside, beside_the_probe) = (Arc::clone(&inside), Arc::clone(&beside_the_probe));
        move |seen| {
            let (refusals, inside) = (Arc::clone(&refusals), Arc::clone(&inside));
            let beside_the_probe = Arc::clone(&beside_the_probe);
            async move {
                if seen.number < WORKERS {
                    refusals.wait().await;
                    return refused(&[("Retry-After", "30")]);
                }
                inside.fetch_add(1, Ordering::SeqCst);
                if seen.number == WORKERS {
                    // Long enough for any other request of this process to get here.
                    for _ in 0..2_000 {
                        tokio::task::yield_now().await;
                    }
                    beside_the_probe.store(inside.load(Ordering::SeqCst) - 1, Ordering::SeqCst);
                }
                Script::ok("{}")
            }
        }
    })
    .await;
    let clock = clock();
    let seed = 85;
    let client = Client::builder(Url::parse(&server.base).unwrap())
        .clock(clock.clone())
        .chance(SeededChance::new(seed))
        .build()
        .unwrap();
    let answers = join_all((0..WORKERS).map(|_| client.get("links", &[]))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.attempts == 2)));
    assert_eq!(server.requests(), 2 * WORKERS);
    assert_eq!(beside_the_probe.load(Ordering::SeqCst), 0, "somebody went beside the probe, seed {seed}");
    let sleeps = clock.sleeps();
    let followers = &sleeps[sleeps.len() - (WORKERS - 1)..];
    assert!(
        followers.windows(2).all(|pair| pair[1] >= pair[0] + Duration::from_millis(50)),
        "two in lock-step, seed {seed}: {sleeps:?}"
    );
    assert!(clock.elapsed() >= Duration::from_secs(30), "nobody before the time asked for");
}

#[tokio::test]
async fn a_pause_holds_requests_that_were_never_refused() {
    let server = Server::playing(vec![
        refused(&[("Retry-After", "3600")]),
        refused(&[("Retry-After", "9")]),
        Script::ok("{}"),
    ])
    .await;
    let clock = clock();
    let client = client(&server.base, &clock);
    client.get("first", &[]).await.unwrap_err();
    assert_eq!(clock.sleeps().len(), 0, "a wait too long to sit out holds nobody else");
    let given_up = client.get("second", &[]).await.unwrap();
    assert_eq!(given_up.attempts, 2);
    assert_eq!(clock.sleeps(), seconds(&[9.45]));
}

#[tokio::test]
async fn a_request_that_gives_up_leaves_the_pause_to_the_others() {
    let server = Server::answering(|seen| {
        if seen.target().ends_with("first") { refused(&[("Retry-After", "9")]) } else { Script::ok("{}") }
    })
    .await;
    let clock = clock();
    let options = Options {
        retry: crossdock_upstream::RetryPolicy { max_retries: 0, ..Default::default() },
        ..Options::default()
    };
    let client = builder(&server.base, &clock).options(options).build().unwrap();
    client.get("first", &[]).await.unwrap_err();
    client.get("second", &[]).await.unwrap();
    assert_eq!(clock.sleeps(), seconds(&[9.45]));
}

#[tokio::test]
async fn the_pace_is_kept_over_retries_and_redirects_as_well() {
    let server = Server::answering(|seen| match seen.number % 3 {
        0 => Script::answer("302 Found", &[("Location", "/v4/there")], ""),
        1 => Script::answer("500 X", &[], ""),
        _ => Script::ok("{}"),
    })
    .await;
    let clock = clock();
    let pace = Pace { requests: 2, per: Duration::from_secs(60), concurrent: 1 };
    let client = builder(&server.base, &clock)
        .options(Options { pace: Some(pace), ..Options::default() })
        .build()
        .unwrap();
    // Redirected, failed; then answered.
    client.get("here", &[]).await.unwrap();
    assert_eq!(server.requests(), 3);
    let sleeps = clock.sleeps();
    assert_eq!(sleeps, seconds(&[0.5, 59.5]), "the third request waits for the first to leave the window");
}

#[tokio::test]
async fn no_more_requests_at_once_than_the_pace_allows() {
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(0)));
    let server = Server::start({
        let most = Arc::clone(&most);
        move |_| {
            let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
            async move {
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
                let mut most = most.lock();
                *most = now.max(*most);
                inside.fetch_sub(1, Ordering::SeqCst);
                Script::ok("{}")
            }
        }
    })
    .await;
    let pace = Pace { requests: 1_000, per: Duration::from_secs(60), concurrent: 5 };
    let client = builder(&server.base, &clock())
        .options(Options { pace: Some(pace), ..Options::default() })
        .build()
        .unwrap();
    let answers = join_all((0..40).map(|_| client.get("links", &[]))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(*most.lock(), 5);
}

#[test]
fn a_pace_that_lets_nothing_through_is_refused() {
    for (requests, concurrent) in [(0, 1), (1, 0)] {
        let pace = Pace { requests, per: Duration::from_secs(1), concurrent };
        let built = builder("https://api.example", &clock())
            .options(Options { pace: Some(pace), ..Options::default() })
            .build();
        assert!(matches!(built, Err(Error::Options { .. })));
    }
}
