//! One call from the first attempt to its answer: what is asked again, when, and when it is given up.

use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use url::Url;

use crate::classify::{Reply, Verdict, by_status};
use crate::client::Shared;
use crate::error::{Broken, Error};
use crate::excerpt::{Scrubber, shown};
use crate::exchange::{self, Failure, Received};
use crate::pause::Passage;
use crate::request::{Answer, Request};
use crate::retry_after;
use crate::shape;

/// Redirects followed within one attempt.
const REDIRECTS_MAX: u32 = 5;

pub(crate) struct Call<'a> {
    shared: &'a Shared,
    request: &'a Request,
    url: Url,
    began: Duration,
    attempts: u32,
    retries: u32,
    has_refreshed: bool,
    has_followed_change: bool,
}

enum Next {
    Done(Box<Answer>),
    /// The credential was refused; this is the one that was sent, and what to say if nothing else can be.
    Refused {
        sent: Option<HeaderValue>,
        last: Box<Error>,
    },
    /// Send again after this wait; none if the shared pause does the waiting.
    Again(Option<Duration>),
}

/// Who an attempt asked as.
#[derive(Default)]
struct Identity {
    credential: Option<HeaderValue>,
    scrubber: Scrubber,
}

/// Why an attempt gave no answer, and what to say if it was the last one.
struct Trouble {
    asked: Option<Duration>,
    /// Concerns every request of the client, not this one alone.
    is_shared: bool,
    reason: String,
    last: Error,
}

impl<'a> Call<'a> {
    pub(crate) fn new(shared: &'a Shared, request: &'a Request) -> Result<Self, Error> {
        let against = request.against.as_ref().unwrap_or_else(|| shared.origin.base());
        let mut url = shared.origin.resolve(against, &request.target)?;
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let began = shared.clock.monotonic();
        Ok(Self {
            shared,
            request,
            url,
            began,
            attempts: 0,
            retries: 0,
            has_refreshed: false,
            has_followed_change: false,
        })
    }

    pub(crate) async fn run(mut self) -> Result<Answer, Error> {
        loop {
            self.attempts += 1;
            match self.attempt().await? {
                Next::Done(answer) => return Ok(*answer),
                Next::Refused { sent, last } => {
                    if !self.may_ask_as_another(sent).await? {
                        return Err(*last);
                    }
                }
                Next::Again(None) => {}
                Next::Again(Some(wait)) => {
                    self.shared.clock.sleep(wait).await;
                    self.shared.counters.waited(wait);
                }
            }
        }
    }

    /// Sends the request once and follows its redirects.
    async fn attempt(&mut self) -> Result<Next, Error> {
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let (_turn, passage) = self.shared.enter().await;
            let (headers, identity) = self.headers().await?;
            let scrubber = &identity.scrubber;
            self.shared.counters.request();
            let received =
                match exchange::get(&self.shared.http, &url, headers, self.shared.body_max_bytes).await {
                    Ok(received) => received,
                    Err(Failure::TooLarge) => {
                        passage.answered();
                        return Err(Error::BodyTooLarge {
                            url: scrubber.shown(&url),
                            limit_bytes: self.shared.body_max_bytes,
                        });
                    }
                    Err(Failure::Broken { kind, detail }) => {
                        let trouble = self.transport_trouble(
                            scrubber.shown(&url),
                            kind,
                            &scrubber.excerpt(detail.as_bytes()),
                        );
                        if !kind.is_worth_a_retry() {
                            return Err(trouble.last);
                        }
                        return self.again(trouble, passage);
                    }
                };
            self.shared.counters.received(received.wire_bytes);
            match redirect(&received) {
                Some(location) => {
                    passage.answered();
                    url = self.shared.origin.resolve(&url, &location)?;
                }
                None => return self.judge(received, &url, &identity, passage),
            }
        }
        Err(Error::TooManyRedirects { url: shown(&self.url), limit: REDIRECTS_MAX })
    }

    /// The headers of one attempt. The credential is read last of all, after every wait.
    async fn headers(&self) -> Result<(HeaderMap, Identity), Error> {
        let mut headers = self.shared.headers.clone();
        if self.request.wants_json && !headers.contains_key(ACCEPT) {
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &self.request.headers {
            headers.insert(name.clone(), value.clone());
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let Some((name, mut value)) = self.credential().await? else {
            return Ok((headers, Identity::default()));
        };
        let scrubber = Scrubber::for_value(&value);
        value.set_sensitive(true);
        headers.insert(name, value.clone());
        Ok((headers, Identity { credential: Some(value), scrubber }))
    }

    async fn credential(&self) -> Result<Option<(HeaderName, HeaderValue)>, Error> {
        match &self.shared.credentials {
            Some(credentials) => credentials.header().await.map_err(|reason| Error::Credentials { reason }),
            None => Ok(None),
        }
    }

    /// Whether a refused request may be sent again: once after a refresh, and once more if the credential has
    /// become another one since the refused one was sent, for that one was never asked about.
    async fn may_ask_as_another(&mut self, sent: Option<HeaderValue>) -> Result<bool, Error> {
        if !self.has_refreshed {
            self.has_refreshed = true;
            tracing::debug!(url = shown(&self.url), "upstream: credential refused, asking for it afresh");
            if let Some(credentials) = &self.shared.credentials {
                credentials.refresh().await.map_err(|reason| Error::Credentials { reason })?;
            }
            return Ok(true);
        }
        if self.has_followed_change {
            return Ok(false);
        }
        let now = self.credential().await?.map(|(_, value)| value);
        self.has_followed_change = now != sent;
        Ok(self.has_followed_change)
    }

    fn judge(
        &mut self,
        received: Received,
        url: &Url,
        identity: &Identity,
        passage: Passage<'_>,
    ) -> Result<Next, Error> {
        let status = received.status;
        let scrubber = &identity.scrubber;
        match self.verdict(&received, url, scrubber) {
            Verdict::Ok | Verdict::Default => self.accept(received, url, scrubber, passage),
            Verdict::Retry { after, reason } => {
                let asked = after.or_else(|| self.asked_by(&received, matches!(status.as_u16(), 429 | 503)));
                let is_shared = status == StatusCode::SERVICE_UNAVAILABLE && asked.is_some();
                let reason = scrubber.excerpt(reason.as_bytes());
                let last = Error::Unavailable {
                    url: scrubber.shown(url),
                    status,
                    attempts: self.attempts,
                    reason: reason.clone(),
                };
                self.again(Trouble { asked, is_shared, reason, last }, passage)
            }
            Verdict::RateLimited { after, reason } => {
                self.shared.counters.rate_limited();
                let asked = after.or_else(|| self.asked_by(&received, true));
                let reason = scrubber.excerpt(reason.as_bytes());
                let last = Error::RateLimited {
                    url: scrubber.shown(url),
                    attempts: self.attempts,
                    reason: reason.clone(),
                };
                self.again(Trouble { asked, is_shared: true, reason, last }, passage)
            }
            Verdict::WaitUntil { until, reason } => {
                self.shared.counters.rate_limited();
                Err(Error::WaitUntil {
                    url: scrubber.shown(url),
                    until,
                    reason: scrubber.excerpt(reason.as_bytes()),
                })
            }
            Verdict::Fatal { reason } => {
                passage.answered();
                Err(Error::Status {
                    url: scrubber.shown(url),
                    status,
                    excerpt: scrubber.excerpt(reason.as_bytes()),
                })
            }
            Verdict::Unauthorized => {
                passage.answered();
                let last = Error::Unauthorized {
                    url: scrubber.shown(url),
                    status,
                    excerpt: scrubber.excerpt(&received.body),
                };
                Ok(Next::Refused { sent: identity.credential.clone(), last: Box::new(last) })
            }
        }
    }

    /// The source's word if it has one, else what the status says. Never [`Verdict::Default`].
    fn verdict(&self, received: &Received, url: &Url, scrubber: &Scrubber) -> Verdict {
        let local_now = self.shared.clock.now();
        let reply = Reply {
            status: received.status,
            headers: &received.headers,
            body: &received.body,
            url,
            server_now: retry_after::server_now(&received.headers).unwrap_or(local_now),
            local_now,
        };
        match self.shared.classify.as_ref().map(|classify| classify.classify(&reply)) {
            Some(verdict) if verdict != Verdict::Default => verdict,
            _ if received.status.is_success() => Verdict::Ok,
            _ => by_status(received.status, &explanation(received, scrubber)),
        }
    }

    fn asked_by(&self, received: &Received, may_ask: bool) -> Option<Duration> {
        let now = self.shared.clock.now();
        if may_ask { retry_after::asked(&received.headers, &received.body, now) } else { None }
    }

    /// Takes a body for data, if it is all there and of the kind that was wanted.
    fn accept(
        &mut self,
        received: Received,
        url: &Url,
        scrubber: &Scrubber,
        passage: Passage<'_>,
    ) -> Result<Next, Error> {
        if !received.is_whole {
            let trouble =
                self.transport_trouble(scrubber.shown(url), Broken::Body, "the answer did not arrive whole");
            return self.again(trouble, passage);
        }
        let mut body = received.body;
        if self.request.wants_json {
            if let Err(problem) = shape::check(&body) {
                let last = Error::Malformed {
                    url: scrubber.shown(url),
                    status: received.status,
                    problem: problem.describe().to_owned(),
                    attempts: self.attempts,
                    excerpt: scrubber.excerpt(&body),
                };
                let reason = problem.describe().to_owned();
                return self.again(Trouble { asked: None, is_shared: false, reason, last }, passage);
            }
            body = body.slice_ref(shape::without_mark(&body));
        }
        passage.answered();
        self.shared.counters.accepted(body.len());
        Ok(Next::Done(Box::new(Answer {
            status: received.status,
            headers: received.headers,
            body,
            url: url.clone(),
            attempts: self.attempts,
            elapsed: self.shared.clock.monotonic().saturating_sub(self.began),
            wire_bytes: received.wire_bytes,
        })))
    }

    fn transport_trouble(&self, url: String, kind: Broken, detail: &str) -> Trouble {
        let reason = format!("{kind}: {detail}");
        let last = Error::Transport { url, kind, attempts: self.attempts, detail: detail.to_owned() };
        Trouble { asked: None, is_shared: false, reason, last }
    }

    /// Decides on one more attempt. Holds the passage until the pause is set, so that nobody slips through
    /// between a refused probe and the pause it asks for.
    fn again(&mut self, trouble: Trouble, _passage: Passage<'_>) -> Result<Next, Error> {
        let shared = self.shared;
        let asked = trouble.asked.filter(|asked| !asked.is_zero());
        let wait = match asked {
            Some(asked) => shared.retry.as_asked(asked, &*shared.chance),
            None => shared.retry.backoff(self.retries + 1, &*shared.chance),
        };
        let now = shared.clock.monotonic();
        let is_late = now.saturating_sub(self.began).saturating_add(wait) > shared.retry.patience;
        if let Some(asked) = asked.filter(|asked| is_late || *asked > shared.retry.longest_wait) {
            let Some(until) = shared.clock.now().checked_add(asked) else { return Err(trouble.last) };
            return Err(Error::WaitUntil { url: shown(&self.url), until, reason: trouble.reason });
        }
        if trouble.is_shared {
            shared.pause.close(now, wait);
        }
        if is_late || self.retries >= shared.retry.max_retries {
            return Err(trouble.last);
        }
        self.retries += 1;
        shared.counters.retry();
        if let Some(observe) = &shared.observe {
            observe.on_retry(&trouble.reason, wait);
        }
        tracing::info!(
            url = shown(&self.url),
            attempt = self.attempts,
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason = trouble.reason,
            "upstream: request will be sent again"
        );
        Ok(Next::Again((!trouble.is_shared).then_some(wait)))
    }
}

/// Where a redirect leads. A redirect without a place is an answer like any other.
fn redirect(received: &Received) -> Option<String> {
    let location = match received.status.as_u16() {
        301 | 302 | 303 | 307 | 308 => received.headers.get(LOCATION)?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// What a refusal says about itself.
fn explanation(received: &Received, scrubber: &Scrubber) -> String {
    let said = scrubber.excerpt(&received.body);
    if !said.is_empty() {
        return said;
    }
    received.status.canonical_reason().unwrap_or("no explanation").to_owned()
}
