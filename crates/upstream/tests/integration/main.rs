//! The client against a server that says exactly what a test wants it to say, byte by byte.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod server;

mod bodies;
mod classifier;
mod limits;
mod origin;
mod rate;
mod retries;
mod secrets;
mod tls;

use std::time::{Duration, UNIX_EPOCH};

use crossdock_upstream::testing::{FixedChance, TestClock};
use crossdock_upstream::{Builder, Client, Options, Url};

/// Fri, 07 Sep 2029 20:59:00 GMT: the local clock of every test, and the server's unless a test says otherwise.
const NOW_EPOCH_SECONDS: u64 = 1_883_509_140;
const NOW_DATE: &str = "Fri, 07 Sep 2029 20:59:00 GMT";

fn clock() -> TestClock {
    TestClock::at(UNIX_EPOCH + Duration::from_secs(NOW_EPOCH_SECONDS))
}

/// A client whose waits take no time and whose draws are all one half.
fn builder(base: &str, clock: &TestClock) -> Builder {
    Client::builder(Url::parse(base).unwrap()).clock(clock.clone()).chance(FixedChance(0.5))
}

fn client(base: &str, clock: &TestClock) -> Client {
    builder(base, clock).build().unwrap()
}

/// Fails a test whose request does not keep the 80 ms it was given.
async fn in_time<T>(request: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), request).await.expect("the time limit holds")
}

fn impatient() -> Options {
    Options { read_timeout: Duration::from_millis(80), ..Options::default() }
}

fn seconds(list: &[f64]) -> Vec<Duration> {
    list.iter().map(|seconds| Duration::from_secs_f64(*seconds)).collect()
}
