//! What an account looks like from far away: its domain and its groups.

use crate::chance::Chance;

const GUID: u64 = 2;

/// What an account looks like from far away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The custom domain the links are on.
    pub domain: String,
    /// Groups that have links; at least one.
    pub groups: u32,
    /// Whether there is one more active group, without links.
    pub empty_group: bool,
    /// Whether there is one more group that is not active; it comes first in the list of groups.
    pub inactive_group: bool,
    /// How many links of a hundred are on `bit.ly`, which nobody can take along.
    pub vendor_domain_percent: u8,
}

impl Default for Shape {
    /// One group with links, an inactive one, and all links on `go.example.com`.
    fn default() -> Self {
        Self {
            domain: "go.example.com".to_owned(),
            groups: 1,
            empty_group: false,
            inactive_group: true,
            vendor_domain_percent: 0,
        }
    }
}

/// One group of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The vendor's id of the group.
    pub guid: String,
    /// What people call it.
    pub name: String,
    /// A group that is not active refuses its list.
    pub is_active: bool,
    pub(super) links: Option<u32>,
}

/// The groups of an account of this shape, in the order in which the API lists them.
pub(super) fn groups(seed: u64, shape: &Shape) -> Vec<Group> {
    let group = |place: u64, name: String, is_active, links| Group {
        guid: guid(seed, 'B', place),
        name,
        is_active,
        links,
    };
    let inactive = shape.inactive_group.then(|| group(1_000, "Closed office".to_owned(), false, None));
    let with_links = (0..shape.groups.max(1)).map(|number| {
        let name = if number == 0 { "Marketing".to_owned() } else { format!("Team {number} & friends") };
        group(u64::from(number), name, true, Some(number))
    });
    let empty = shape.empty_group.then(|| group(1_001, "New office".to_owned(), true, None));
    inactive.into_iter().chain(with_links).chain(empty).collect()
}

/// A vendor's id such as `Ba1bc23dE4F`.
pub(super) fn guid(seed: u64, first: char, place: u64) -> String {
    const SIGNS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut chance = Chance::new(seed, GUID, place.wrapping_mul(256) + u64::from(u32::from(first)));
    std::iter::once(first).chain((0..10).map(|_| char::from(*chance.pick(SIGNS)))).collect()
}
