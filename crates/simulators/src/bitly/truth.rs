//! What is true of an account, told without the API: one row per slug, for whoever checks an import.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::{
    account::{Account, is_expired},
    edits::Position,
    link::Link,
    records::RecordFault,
    words::INTERNATIONAL_HOSTS,
};
use crate::{date, payload::Producer};

/// What a request for a slug must meet after a right import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// A redirect to the destination.
    Redirect,
    /// The link has expired: 410, or whatever the domain says about expired links.
    Gone,
    /// The link did not come over, rightly: 404, or the domain's fallback.
    Absent,
}

/// One slug of an account and what must become of it. A link with custom back-halves has several rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// The vendor's id of the link.
    pub source_id: String,
    /// The host the slug is on at the source.
    pub host: String,
    /// The slug as text, not percent-encoded.
    pub slug: String,
    /// The destination, byte for byte, as the API gives it; nothing for a link that has none.
    pub destination: Option<String>,
    /// The destination as a `Location` header carries it: see [`location_form`].
    pub location: Option<String>,
    /// What asking for the slug must meet.
    pub expect: Expect,
    /// Whether a right importer fails this record.
    pub planted: bool,
    /// How the record is broken on purpose, planted or repairable.
    pub fault: Option<&'static str>,
    /// Whether this is a custom back-half and not the generated slug.
    pub custom: bool,
    /// Whether the link is archived; it redirects all the same.
    pub archived: bool,
    /// RFC 3339 in UTC.
    pub created_at: String,
    /// RFC 3339 in UTC.
    pub expires_at: Option<String>,
    /// The title; nothing if it is absent or null, or spoiled on purpose.
    pub title: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The guid of the group that lists the link.
    pub group: String,
}

impl Truth {
    /// Whether an answer is the one that a right import gives.
    ///
    /// `location` is the header's value. A raw space in a destination may be escaped or not, and percent
    /// signs' hexadecimal digits may have either case; everything else counts byte for byte.
    #[must_use]
    pub fn holds(&self, status: u16, location: Option<&str>) -> bool {
        match self.expect {
            Expect::Redirect => {
                let same = location.map(location_form) == self.location;
                matches!(status, 301 | 302 | 307 | 308) && same
            }
            Expect::Gone => status == 410,
            Expect::Absent => status == 404,
        }
    }
}

/// A destination in the form a `Location` header can carry (RFC 9110, section 10.2.2; RFC 3987, section 3.1):
/// an international host in punycode, and everything that is not printable ASCII, spaces included, as UTF-8 in
/// percent signs. Nothing else changes.
#[must_use]
pub fn location_form(destination: &str) -> String {
    let mut text = destination.to_owned();
    for (unicode, ascii) in INTERNATIONAL_HOSTS {
        if let Some(rest) = text.strip_prefix(&format!("http://{unicode}")) {
            text = format!("http://{ascii}{rest}");
        }
    }
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Account {
    /// Every slug of every link that a complete walk meets now, in list order.
    pub fn truth(self: &Arc<Self>) -> impl Iterator<Item = Truth> + Send + use<> {
        let mut rows = Rows::new(Arc::clone(self));
        std::iter::from_fn(move || rows.next_row())
    }
}

struct Rows {
    account: Arc<Account>,
    place: Position,
    pending: std::vec::IntoIter<Truth>,
}

impl Rows {
    fn new(account: Arc<Account>) -> Self {
        Self { account, place: Position::BEGINNING, pending: Vec::new().into_iter() }
    }

    /// Leaves out the first `number` rows without computing them.
    fn skip(&mut self, mut number: usize) {
        while number > 0 {
            let edits = self.account.edits();
            let Some(place) = edits.after(self.place, self.account.count()) else { return };
            let slugs = self.account.slugs_at(place) as usize;
            drop(edits);
            if slugs > number {
                self.next_row();
                self.pending.by_ref().take(number - 1).for_each(drop);
                return;
            }
            self.place = place;
            number -= slugs;
        }
    }

    fn next_row(&mut self) -> Option<Truth> {
        loop {
            if let Some(row) = self.pending.next() {
                return Some(row);
            }
            let edits = self.account.edits();
            self.place = edits.after(self.place, self.account.count())?;
            let link = self.account.link(&edits, self.place);
            drop(edits);
            let group = self.account.group_at(self.place);
            let group = self.account.groups().iter().find(|known| known.links == Some(group));
            let guid = group.map(|group| group.guid.clone()).unwrap_or_default();
            self.pending = link.map(|link| rows(&link, &guid)).unwrap_or_default().into_iter();
        }
    }
}

fn rows(link: &Link, group: &str) -> Vec<Truth> {
    let spoiled = matches!(link.fault, Some(RecordFault::ControlInTitle | RecordFault::QuotesInTitle));
    let planted = link.fault.is_some_and(RecordFault::must_fail);
    let destination = destination(link);
    let expect = match link.expires_at {
        _ if planted || link.fault == Some(RecordFault::Deleted) => Expect::Absent,
        Some(end) if is_expired(end) => Expect::Gone,
        _ => Expect::Redirect,
    };
    let row = |(place, slug): (usize, &str)| Truth {
        source_id: link.id(),
        host: link.host.clone(),
        slug: slug.to_owned(),
        location: destination.as_deref().map(location_form),
        destination: destination.clone(),
        expect,
        planted,
        fault: link.fault.map(RecordFault::name),
        custom: place > 0,
        archived: link.archived,
        created_at: date::rfc3339(link.created_at),
        expires_at: link.expires_at.map(date::rfc3339),
        title: link.title.value().filter(|_| !spoiled).cloned(),
        tags: link.tags.value().cloned().unwrap_or_default(),
        group: group.to_owned(),
    };
    link.slugs().enumerate().map(row).collect()
}

fn destination(link: &Link) -> Option<String> {
    let unusable = link.fault.is_some_and(RecordFault::must_fail);
    (!unusable).then(|| link.destination.clone())
}

/// The rows from `offset` on, at most `limit` of them, as lines of JSON.
pub(super) fn lines(account: &Arc<Account>, offset: usize, limit: usize) -> Producer {
    const LINES_PER_PIECE: usize = 500;
    let mut rows = Rows::new(Arc::clone(account));
    rows.skip(offset);
    let mut rows = std::iter::from_fn(move || rows.next_row()).take(limit);
    Box::new(move || {
        let mut piece = Vec::new();
        for row in rows.by_ref().take(LINES_PER_PIECE) {
            serde_json::to_writer(&mut piece, &row).expect("a row is plain text, numbers and lists");
            piece.push(b'\n');
        }
        (!piece.is_empty()).then(|| Bytes::from(piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_the_destination_with_what_a_header_cannot_carry_escaped() {
        for (destination, expected) in [
            ("https://example.com/a?b=%25#c", "https://example.com/a?b=%25#c"),
            ("https://example.com/产品", "https://example.com/%E4%BA%A7%E5%93%81"),
            ("https://example.com/a b", "https://example.com/a%20b"),
            ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
            ("https://example.com/[1]'{q}'|\\", "https://example.com/[1]'{q}'|\\"),
            ("mailto:a@example.com", "mailto:a@example.com"),
        ] {
            assert_eq!(location_form(destination), expected);
        }
    }

    #[test]
    fn there_is_one_row_for_every_slug() {
        let account = Arc::new(Account::generate(1_000, 3).with_faults(&"rough".parse().unwrap()));
        let rows: Vec<Truth> = account.truth().collect();
        assert_eq!(rows.len() as u64, account.slug_count());
        let links: std::collections::HashSet<_> = rows.iter().map(|row| &row.source_id).collect();
        assert_eq!(links.len() as u64, account.links());
        let planted: std::collections::HashSet<_> =
            rows.iter().filter(|row| row.planted).map(|row| row.source_id.clone()).collect();
        let told: std::collections::HashSet<_> =
            account.planted().into_iter().map(|planted| planted.source_id).collect();
        assert_eq!(planted, told);
        assert!(rows.iter().any(|row| row.expect == Expect::Gone));
    }

    #[test]
    fn rows_left_out_are_exactly_the_first() {
        let account = Arc::new(Account::generate(60, 3));
        let all: Vec<Truth> = account.truth().collect();
        for number in 0..=all.len() + 1 {
            let mut rows = Rows::new(Arc::clone(&account));
            rows.skip(number);
            let rest: Vec<Truth> = std::iter::from_fn(|| rows.next_row()).collect();
            assert_eq!(rest, all[number.min(all.len())..], "{number}");
        }
    }

    #[test]
    fn a_row_tells_right_answers_from_wrong_ones() {
        let account = Arc::new(Account::generate(200, 3));
        let rows: Vec<Truth> = account.truth().collect();
        let redirect = rows.iter().find(|row| row.expect == Expect::Redirect).unwrap();
        let gone = rows.iter().find(|row| row.expect == Expect::Gone).unwrap();
        let location = redirect.location.as_deref();
        for (row, status, location, expected) in [
            (redirect, 302, location, true),
            (redirect, 200, location, false),
            (redirect, 302, Some("https://elsewhere.example/"), false),
            (redirect, 302, None, false),
            (gone, 410, None, true),
            (gone, 302, location, false),
        ] {
            assert_eq!(row.holds(status, location), expected, "{} {status} {location:?}", row.slug);
        }
    }
}
