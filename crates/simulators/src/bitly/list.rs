//! The list of a group's links: its parameters, its pages, and what goes wrong with them.

use std::time::Duration;

use http::{HeaderName, header};

use super::{
    edits::Position,
    faults::{Fault, RetryAfter, Strike},
    link::Field,
    listing::{self, Archived, Page, Query},
    reply::{Delivery, Reply},
    routes::Call,
    shape::Group,
    wire::{self, Pagination},
};
use crate::{chance::draw, encoding};

const SIZE_MAX: usize = 100;
const RESOURCE: &str = "bitlinks";
const MADE_UP: u64 = 0xADD;

/// Answers one list request.
pub(super) async fn reply(call: &Call<'_>, guid: &str) -> Reply {
    let group = match call.find_group(guid) {
        Ok(group) => group,
        Err(reply) => return *reply,
    };
    let query = match read_query(call, group) {
        Ok(query) => query,
        Err(field) => return Reply::json(400, &wire::field_error(RESOURCE, field)),
    };
    let behind = (query.after != Position::BEGINNING).then_some(query.after.index);
    let cursor = call.parameter("search_after").unwrap_or_default();
    let request = call.state.counters.list(&group.guid, cursor, behind);
    let mut plan =
        PagePlan { call, group, size: query.size, query, request, twist: Twist::default(), instead: None };
    for strike in call.state.faults.strikes(request) {
        call.state.counters.struck(request, &strike.name);
        plan.take(strike);
    }
    if !plan.twist.wait.is_zero() {
        tokio::time::sleep(plan.twist.wait).await;
    }
    plan.reply()
}

/// Reads the parameters; an error is the name of the one that cannot be read.
fn read_query(call: &Call<'_>, group: &Group) -> Result<Query, &'static str> {
    let number = |name: &'static str| {
        call.parameter(name).map(|text| text.parse::<i64>().map_err(|_| name)).transpose()
    };
    let size = number("size")?.unwrap_or(50);
    let size = usize::try_from(size).ok().filter(|size| (1..=SIZE_MAX).contains(size)).ok_or("size")?;
    let archived = match call.parameter("archived") {
        None | Some("" | "off") => Archived::Off,
        Some("on") => Archived::On,
        Some("both") => Archived::Both,
        Some(_) => return Err("archived"),
    };
    let after = match call.parameter("search_after") {
        None | Some("") => Position::BEGINNING,
        Some(cursor) => listing::read_cursor(&call.state.account, group, cursor).ok_or("search_after")?,
    };
    let tags = call.query.iter().filter(|(name, _)| name == "tags").map(|(_, tag)| tag.clone()).collect();
    Ok(Query {
        size,
        after,
        archived,
        created_before: number("created_before")?,
        created_after: number("created_after")?,
        tags,
        overlap: 0,
        trailing_empty_page: call.state.faults.trailing_empty_page(),
    })
}

/// What faults do to a page that is sent all the same.
#[derive(Default)]
struct Twist {
    wait: Duration,
    empty: bool,
    delivery: Delivery,
    pagination: Option<Fault>,
    total: Option<String>,
}

/// A page that is about to be answered.
struct PagePlan<'a> {
    call: &'a Call<'a>,
    group: &'a Group,
    query: Query,
    /// The size that was asked for.
    size: usize,
    request: u64,
    twist: Twist,
    instead: Option<Reply>,
}

impl PagePlan<'_> {
    fn take(&mut self, strike: Strike) {
        let twist = &mut self.twist;
        match strike.fault {
            Fault::Slow(wait) => twist.wait += wait,
            Fault::Stall(pause) => twist.delivery = Delivery::Stall(pause),
            Fault::Cut => twist.delivery = Delivery::Cut,
            Fault::CutChunked => twist.delivery = Delivery::CutChunked,
            Fault::Drop => twist.delivery = Delivery::Drop,
            Fault::TruncatedJson => twist.delivery = Delivery::TruncatedJson,
            Fault::Gzip => twist.delivery = Delivery::Gzip,
            Fault::TruncatedGzip(missing) => twist.delivery = Delivery::TruncatedGzip(missing),
            Fault::DeadCursor => {
                self.instead = Some(Reply::json(400, &wire::field_error(RESOURCE, "search_after")));
            }
            Fault::EmptyPage => twist.empty = true,
            Fault::ShortPage => self.query.size = (self.query.size / 2).max(1),
            Fault::Overlap(links) => self.query.overlap = links.min(self.query.size - 1),
            Fault::RepeatCursor
            | Fault::Ring
            | Fault::NoPagination
            | Fault::NoCursor
            | Fault::ForeignNext(_) => twist.pagination = Some(strike.fault),
            Fault::TotalOff(text) => twist.total = Some(text),
            Fault::LinkAdded => self.add(None),
            Fault::LinkAddedAhead => {
                let place = self.place_ahead(|_| true);
                if let Some(index) = place.and_then(Position::generated_index) {
                    self.add(Some(index));
                }
            }
            Fault::LinkDeleted => self.delete(self.place_ahead(|place| self.is_sound(place))),
            Fault::LinkDeletedBehind => self.delete(self.place_behind()),
            Fault::TokenExpires => {
                self.call.state.token.expire();
                self.instead = Some(Reply::error(401, "UNAUTHORIZED", RESOURCE));
            }
            Fault::Error { status, message, retry_after } => {
                self.instead = Some(self.error(status, message, &retry_after));
            }
            Fault::ErrorWith200 => self.instead = Some(Reply::error(200, "RATE_LIMIT_EXCEEDED", RESOURCE)),
            Fault::Html(status) => self.instead = Some(Reply::html(status)),
            Fault::EmptyObject => self.instead = Some(Reply::page(b"{}".to_vec())),
            Fault::EmptyBody => self.instead = Some(Reply::page(Vec::new())),
            Fault::Redirect(url) => {
                let reply = Reply::error(302, "FOUND", RESOURCE);
                self.instead = Some(reply.with_header(header::LOCATION, url));
            }
            Fault::Huge(bytes) => self.instead = Some(Reply::huge(br#"{"links":["#, bytes)),
        }
    }

    fn error(&self, status: u16, message: &str, retry_after: &RetryAfter) -> Reply {
        let mut reply = Reply::error(status, message, RESOURCE);
        if status == 403 && message.ends_with("LIMIT_EXCEEDED") {
            reply = reply.with_header(HeaderName::from_static("x-ratelimit-reason"), message.to_owned());
        }
        match retry_after.header((self.call.state.options.clock)()) {
            Some(value) => reply.with_header(header::RETRY_AFTER, value),
            None => reply,
        }
    }

    fn reply(self) -> Reply {
        if let Some(reply) = self.instead {
            return reply.delivered_by_default(self.twist.delivery);
        }
        let page = if self.twist.empty { self.empty_page() } else { self.page() };
        let pagination = self.pagination(&page);
        let body = wire::page(&self.call.origin, self.group, &page, &pagination, self.size);
        Reply::page(body).delivered(self.twist.delivery)
    }

    fn page(&self) -> Page {
        listing::page(&self.call.state.account, self.group, &self.query)
    }

    /// No links, and a place of its own between the last link that was seen and the next.
    fn empty_page(&self) -> Page {
        Page { links: Vec::new(), next: Some(Position { behind: u32::MAX, ..self.query.after }) }
    }

    fn pagination(&self, page: &Page) -> Pagination {
        match &self.twist.pagination {
            Some(Fault::NoPagination) => Pagination::Missing,
            Some(Fault::NoCursor) => Pagination::WithoutCursor,
            Some(Fault::RepeatCursor) => self.next(&self.call.origin.base_url, Some(self.query.after)),
            Some(Fault::Ring) => self.next(&self.call.origin.base_url, Some(self.end_of_first_page())),
            Some(Fault::ForeignNext(origin)) => self.next(&format!("{origin}/v4"), page.next),
            _ => self.next(&self.call.origin.base_url, page.next),
        }
    }

    fn next(&self, base_url: &str, place: Option<Position>) -> Pagination {
        let Some(place) = place else {
            return Pagination::Next { cursor: String::new(), url: String::new(), total: self.total() };
        };
        let cursor = listing::cursor(&self.call.state.account, self.group, place);
        let kept = self.call.query.iter().filter(|(name, _)| name != "search_after" && name != "size");
        let kept: String = kept
            .map(|(name, value)| format!("&{}={}", encoding::component(name), encoding::component(value)))
            .collect();
        let url = format!(
            "{base_url}/groups/{}/bitlinks?search_after={}&size={}{kept}",
            self.group.guid,
            encoding::component(&cursor),
            self.size
        );
        Pagination::Next { cursor, url, total: self.total() }
    }

    /// What the page says of the number of links, as it stands in the JSON.
    fn total(&self) -> Option<String> {
        let said = self.twist.total.as_deref();
        if said.is_none() && !self.call.state.faults.tells_total() {
            return None;
        }
        let all = Query { after: Position::BEGINNING, overlap: 0, ..self.query.clone() };
        let links = listing::count(&self.call.state.account, self.group, &all);
        let off = |text: &str| text.starts_with(['+', '-']).then(|| text.parse::<i64>().ok()).flatten();
        Some(match (said, said.and_then(off)) {
            (_, Some(off)) => (i64::try_from(links).unwrap_or(i64::MAX) + off).to_string(),
            (Some(text), None) => text.to_owned(),
            (None, None) => links.to_string(),
        })
    }

    fn end_of_first_page(&self) -> Position {
        let first = Query { after: Position::BEGINNING, overlap: 0, ..self.query.clone() };
        let first = listing::page(&self.call.state.account, self.group, &first);
        first.next.unwrap_or(Position::BEGINNING)
    }

    /// A place that the walk meets after this page: half a page further, or the last that `wanted` agrees to.
    fn place_ahead(&self, wanted: impl Fn(Position) -> bool) -> Option<Position> {
        let account = &self.call.state.account;
        let group = self.group.links?;
        let distance = self.query.size + self.query.size / 2;
        let next = |place| listing::place_after(account, group, &self.query, place);
        let places = std::iter::successors(next(self.query.after), |place| next(*place));
        places.take(distance).filter(|place| wanted(*place)).last()
    }

    /// A place that the walk has met.
    fn place_behind(&self) -> Option<Position> {
        let account = &self.call.state.account;
        let group = self.group.links?;
        let before = |place| listing::place_before(account, group, &self.query, place);
        let mut places = std::iter::successors(before(self.query.after), |place| before(*place));
        places.find(|place| self.is_sound(*place))
    }

    /// Whether the link there is not broken on purpose, so that the number of planted links stays.
    fn is_sound(&self, place: Position) -> bool {
        let account = &self.call.state.account;
        account.link(&account.edits(), place).is_some_and(|link| link.fault.is_none())
    }

    fn delete(&self, place: Option<Position>) {
        if let Some(place) = place {
            self.call.state.account.delete_at(place);
        }
    }

    fn add(&self, behind: Option<u64>) {
        let account = &self.call.state.account;
        let number = draw(account.seed(), MADE_UP, self.request);
        let destination = format!("https://www.example.com/added/{number}");
        let title = Field::Value("Added while somebody was reading".to_owned());
        let added = account.add(None, behind, destination, title, Vec::new());
        added.expect("a made-up slug is unlike every other");
    }
}
