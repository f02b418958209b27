//! Giving up: a dropped request leaves nothing behind that others would wait for.

use std::sync::Arc;
use std::time::Duration;

use crossdock_upstream::{Options, Pace};
use tokio::sync::Notify;

use crate::server::{Script, Server};
use crate::{builder, clock};

#[tokio::test]
async fn a_request_that_is_dropped_under_way_gives_its_place_back() {
    let arrived = Arc::new(Notify::new());
    let server = Server::start({
        let arrived = Arc::clone(&arrived);
        move |seen| {
            let arrived = Arc::clone(&arrived);
            async move {
                match seen.number {
                    0 => Script::answer("429 X", &[("Retry-After", "5")], ""),
                    1 => {
                        arrived.notify_one();
                        Script::bytes("").then_silence()
                    }
                    _ => Script::ok("{}"),
                }
            }
        }
    })
    .await;
    let pace = Pace { requests: 100, per: Duration::from_secs(60), concurrent: 1 };
    let client = builder(&server.base, &clock())
        .options(Options { pace: Some(pace), ..Options::default() })
        .build()
        .unwrap();
    // The second request of this call is the probe after the pause, and holds the only place.
    let probe = tokio::spawn({
        let client = client.clone();
        async move { client.get("first", &[]).await }
    });
    arrived.notified().await;
    probe.abort();
    assert!(probe.await.unwrap_err().is_cancelled());
    let answer = client.get("second", &[]).await.unwrap();
    assert_eq!((answer.attempts, server.requests()), (1, 3));
}
