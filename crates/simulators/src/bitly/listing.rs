//! One page of a group's links, and the cursor that leads to the next.

use super::{
    account::Account,
    edits::{Edits, Position},
    link::Link,
    shape::Group,
};
use crate::{
    chance::{draw, mix},
    encoding,
};

const CURSOR: u64 = 0xC0;

/// Which links the client wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Archived {
    /// Only those that are not archived; this is the default.
    #[default]
    Off,
    /// Only archived ones.
    On,
    /// All of them.
    Both,
}

/// The parameters of one list request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) size: usize,
    /// The page begins behind this place.
    pub(super) after: Position,
    pub(super) archived: Archived,
    /// Seconds since 1970; only older links.
    pub(super) created_before: Option<i64>,
    /// Seconds since 1970; only newer links.
    pub(super) created_after: Option<i64>,
    /// Only links with one of these tags.
    pub(super) tags: Vec<String>,
    /// This many links of the page before come first.
    pub(super) overlap: usize,
    /// Whether a page that is just full still has a cursor.
    pub(super) trailing_empty_page: bool,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            size: 50,
            after: Position::BEGINNING,
            archived: Archived::Off,
            created_before: None,
            created_after: None,
            tags: Vec::new(),
            overlap: 0,
            trailing_empty_page: false,
        }
    }
}

/// The links of one page, and where the next one begins.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) links: Vec<Link>,
    /// Behind which place the next page begins; nothing at the end.
    pub(super) next: Option<Position>,
}

/// Reads one page of `group`.
pub(super) fn page(account: &Account, group: &Group, query: &Query) -> Page {
    let Some(group) = group.links else {
        return Page { links: Vec::new(), next: None };
    };
    let edits = account.edits();
    let walk = Walk { account, edits: &edits, group, query };
    let mut places = walk.places_before(query.after, query.overlap);
    let mut place = query.after;
    let mut next = None;
    while let Some(found) = walk.place_after(place) {
        if places.len() == query.size {
            next = Some(place);
            break;
        }
        places.push(found);
        place = found;
    }
    if next.is_none() && query.trailing_empty_page && places.len() == query.size && query.size > 0 {
        next = Some(place);
    }
    Page { links: places.into_iter().filter_map(|place| account.link(&edits, place)).collect(), next }
}

/// How many links of `group` the query finds. Walks over all of them.
pub(super) fn count(account: &Account, group: &Group, query: &Query) -> usize {
    let Some(group) = group.links else { return 0 };
    let edits = account.edits();
    let walk = Walk { account, edits: &edits, group, query };
    std::iter::successors(walk.place_after(query.after), |place| walk.place_after(*place)).count()
}

/// The first place of the group behind `after` that the query wants.
pub(super) fn place_after(account: &Account, group: u32, query: &Query, after: Position) -> Option<Position> {
    Walk { account, edits: &account.edits(), group, query }.place_after(after)
}

/// The last place of the group before `before` that the query wants.
pub(super) fn place_before(
    account: &Account,
    group: u32,
    query: &Query,
    before: Position,
) -> Option<Position> {
    Walk { account, edits: &account.edits(), group, query }.place_before(before)
}

struct Walk<'a> {
    account: &'a Account,
    edits: &'a Edits,
    group: u32,
    query: &'a Query,
}

impl Walk<'_> {
    fn place_after(&self, mut place: Position) -> Option<Position> {
        loop {
            place = self.edits.after(place, self.account.count())?;
            if self.wants(place) {
                return Some(place);
            }
        }
    }

    fn place_before(&self, mut place: Position) -> Option<Position> {
        loop {
            place = self.edits.before(place, self.account.count())?;
            if self.wants(place) {
                return Some(place);
            }
        }
    }

    /// The `number` wanted places that end with `last`, in list order.
    fn places_before(&self, last: Position, number: usize) -> Vec<Position> {
        if number == 0 || last == Position::BEGINNING {
            return Vec::new();
        }
        let behind = Position { behind: last.behind.saturating_add(1), ..last };
        let mut places: Vec<Position> =
            std::iter::successors(self.place_before(behind), |place| self.place_before(*place))
                .take(number)
                .collect();
        places.reverse();
        places
    }

    fn wants(&self, place: Position) -> bool {
        self.account.group_at(place) == self.group
            && self.wants_archived(place)
            && self.wants_creation(place)
            && self.wants_tags(place)
    }

    fn wants_archived(&self, place: Position) -> bool {
        match self.query.archived {
            Archived::Both => true,
            Archived::On => self.account.archived_at(self.edits, place),
            Archived::Off => !self.account.archived_at(self.edits, place),
        }
    }

    fn wants_creation(&self, place: Position) -> bool {
        if self.query.created_before.is_none() && self.query.created_after.is_none() {
            return true;
        }
        let created_at = self.account.created_at_position(self.edits, place);
        self.query.created_before.is_none_or(|before| created_at < before)
            && self.query.created_after.is_none_or(|after| created_at > after)
    }

    fn wants_tags(&self, place: Position) -> bool {
        if self.query.tags.is_empty() {
            return true;
        }
        let link = self.account.link(self.edits, place);
        let tags = link.as_ref().and_then(|link| link.tags.value());
        tags.is_some_and(|tags| tags.iter().any(|tag| self.query.tags.contains(tag)))
    }
}

/// Turns a place into the opaque text that the client sends back: the place and a check value, in base64 whose
/// `+` and `/` have to be percent-encoded in a query.
pub(super) fn cursor(account: &Account, group: &Group, place: Position) -> String {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&scramble(account, place.index).to_be_bytes());
    bytes[8..12].copy_from_slice(&place.behind.to_be_bytes());
    bytes[12..].copy_from_slice(&check_value(account, group, place).to_be_bytes());
    encoding::base64(&bytes)
}

/// The place that a cursor stands for, if this account gave it for this group.
pub(super) fn read_cursor(account: &Account, group: &Group, cursor: &str) -> Option<Position> {
    let bytes = encoding::from_base64(cursor)?;
    let index = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let behind = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    let place = Position { index: unscramble(account, index), behind };
    let check: [u8; 4] = bytes.get(12..)?.try_into().ok()?;
    (u32::from_be_bytes(check) == check_value(account, group, place)).then_some(place)
}

fn scramble(account: &Account, index: i64) -> u64 {
    (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ mix(account.seed())
}

fn unscramble(account: &Account, index: u64) -> i64 {
    // The inverse of the odd factor above modulo 2 to the 64th.
    (index ^ mix(account.seed())).wrapping_mul(0xF1DE_83E1_9937_733D) as i64
}

fn check_value(account: &Account, group: &Group, place: Position) -> u32 {
    let group = group.guid.bytes().fold(0, |value: u64, byte| mix(value ^ u64::from(byte)));
    draw(account.seed() ^ group, CURSOR, draw(place.index as u64, CURSOR, u64::from(place.behind))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_accepted_only_by_the_group_and_account_that_gave_it() {
        let account = Account::generate(100, 1);
        let group = account.default_group();
        for place in [
            Position::BEGINNING,
            Position::generated(0),
            Position::generated(99),
            Position { index: -3, behind: 0 },
            Position { index: 12, behind: 2 },
        ] {
            let text = cursor(&account, group, place);
            assert_eq!(read_cursor(&account, group, &text), Some(place));
            assert_eq!(read_cursor(&account, &account.groups()[0], &text), None);
            assert_eq!(read_cursor(&Account::generate(100, 2), group, &text), None);
        }
        for wrong in ["", "ZmFrZQ", "AAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(read_cursor(&account, group, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_account_of_a_thousand_million_links_is_read_at_its_end_without_being_stored() {
        let count = 1_000_000_000;
        let account = Account::generate(count, 1);
        let after = Position::generated(count - 4);
        let query = Query { size: 100, after, archived: Archived::Both, ..Query::default() };
        let last = page(&account, account.default_group(), &query);
        assert_eq!(last.links.len(), 3);
        assert_eq!(last.next, None);
        for link in &last.links {
            assert!(account.find(&link.id()).is_some(), "{}", link.id());
        }
    }

    #[test]
    fn some_cursors_need_percent_encoding() {
        let account = Account::generate(10_000, 1);
        let group = account.default_group();
        let cursors: Vec<_> =
            (0..50).map(|page| cursor(&account, group, Position::generated(page * 100 + 99))).collect();
        assert!(cursors.iter().any(|cursor| cursor.contains('+')));
    }
}
