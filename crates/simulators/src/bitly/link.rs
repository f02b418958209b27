//! One link of an account, computed from its index.

use super::{
    records::RecordFault,
    words::{COUNTRIES, HOSTS, INTERNATIONAL_HOSTS, PATHS, RAW_PATHS, TAGS, TITLES},
};
use crate::chance::Chance;

/// A text field that an answer may leave out, give as `null`, or give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field<T> {
    Absent,
    Null,
    Value(T),
}

impl<T> Field<T> {
    pub(super) fn value(&self) -> Option<&T> {
        match self {
            Self::Absent | Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }

    /// `value`, or rarely one of the two ways of saying that there is none.
    fn sometimes(chance: &mut Chance, absent: u64, null: u64, value: impl FnOnce(&mut Chance) -> T) -> Self {
        match chance.below(1_000) {
            ticket if ticket < absent => Self::Absent,
            ticket if ticket < absent + null => Self::Null,
            _ => Self::Value(value(chance)),
        }
    }
}

/// Everything the account knows about one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) host: String,
    pub(super) slug: String,
    /// Newest first; the slugs without host.
    pub(super) back_halves: Field<Vec<String>>,
    pub(super) destination: String,
    pub(super) title: Field<String>,
    pub(super) tags: Field<Vec<String>>,
    pub(super) archived: bool,
    /// Seconds since 1970.
    pub(super) created_at: i64,
    /// Seconds since 1970.
    pub(super) expires_at: Option<i64>,
    /// How the record is broken on purpose.
    pub(super) fault: Option<RecordFault>,
    pub(super) looks: Looks,
}

/// What makes the JSON of one link different from its neighbours' without meaning anything to us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Looks {
    pub(super) ascii: bool,
    pub(super) slashes: bool,
    pub(super) says_not_deleted: bool,
    pub(super) null_expiration: bool,
    pub(super) unknown_fields: u8,
    pub(super) encoded_back_halves: bool,
    pub(super) routing: Option<&'static str>,
    pub(super) deep_link: Option<DeepLink>,
}

/// The system an app link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeepLink {
    Ios,
    Android,
}

impl DeepLink {
    pub(super) fn os(self) -> &'static str {
        match self {
            Self::Ios => "ios",
            Self::Android => "android",
        }
    }

    pub(super) fn install_url(self) -> &'static str {
        match self {
            Self::Ios => "https://apps.example.com/ios/id123456789",
            Self::Android => "https://apps.example.com/android/details?id=com.example.app&hl=en",
        }
    }
}

impl Link {
    /// The vendor's id: host and slug.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.host, self.slug)
    }

    /// Every slug of the link: the generated one, then the custom back-halves.
    pub(super) fn slugs(&self) -> impl Iterator<Item = &str> {
        let back_halves = self.back_halves.value().into_iter().flatten();
        std::iter::once(self.slug.as_str()).chain(back_halves.map(String::as_str))
    }
}

const DESTINATION: u64 = 0x11;
const TITLE: u64 = 0x12;
const TAG: u64 = 0x13;
const LOOKS: u64 = 0x14;
const BACK_HALF: u64 = 0x15;

/// How many custom back-halves a link has, or how it says that it has none.
pub(super) fn back_half_count(seed: u64, index: u64) -> Field<u64> {
    match Chance::new(seed, BACK_HALF, index).below(1_000) {
        0..80 => Field::Absent,
        80..90 => Field::Null,
        90..780 => Field::Value(0),
        780..940 => Field::Value(1),
        940..980 => Field::Value(2),
        _ => Field::Value(3),
    }
}

pub(super) fn title(seed: u64, index: u64) -> Field<String> {
    let mut chance = Chance::new(seed, TITLE, index);
    Field::sometimes(&mut chance, 30, 30, |chance| {
        if chance.per_mille(20) {
            return String::new();
        }
        if chance.per_mille(5) {
            return "A very long title, ".repeat(40);
        }
        let text = *chance.pick(TITLES);
        if chance.per_mille(200) { text.to_owned() } else { format!("{text} {}", chance.below(10_000)) }
    })
}

pub(super) fn tags(seed: u64, index: u64) -> Field<Vec<String>> {
    let mut chance = Chance::new(seed, TAG, index);
    Field::sometimes(&mut chance, 10, 10, |chance| {
        let first = chance.below(TAGS.len() as u64) as usize;
        let count = [0, 0, 1, 1, 2, 3, 4][chance.below(7) as usize];
        (0..count).map(|place| TAGS[(first + 3 * place) % TAGS.len()].to_owned()).collect()
    })
}

pub(super) fn looks(seed: u64, index: u64) -> Looks {
    let mut chance = Chance::new(seed, LOOKS, index);
    Looks {
        ascii: chance.per_mille(100),
        slashes: chance.per_mille(50),
        says_not_deleted: chance.per_mille(300),
        null_expiration: chance.per_mille(50),
        unknown_fields: chance.below(6) as u8,
        encoded_back_halves: chance.per_mille(250),
        routing: chance.per_mille(20).then(|| *chance.pick(COUNTRIES)),
        deep_link: chance.per_mille(30).then(|| *chance.pick(&[DeepLink::Ios, DeepLink::Android])),
    }
}

/// Where a link leads: mostly plain pages, and everything else that real accounts hold.
pub(super) fn destination(seed: u64, index: u64) -> String {
    let mut chance = Chance::new(seed, DESTINATION, index);
    let kind = chance.below(1_000);
    let host = *chance.pick(HOSTS);
    let path = *chance.pick(PATHS);
    let raw = *chance.pick(RAW_PATHS);
    let number = chance.below(1_000_000);
    match kind {
        0..480 => format!("https://{host}/{path}/{number}"),
        480..680 => format!("https://{host}/{path}?id={number}&utm_source=bitly&utm_medium=mail&b=%26%3D"),
        680..740 => format!("http://{host}/{path}?n={number}"),
        740..770 => format!("https://{host}/?abc{number}#123"),
        770..790 => format!("https://{host}/{path}#/route/{number}?x=1"),
        790..850 => format!("https://{host}/{raw}/{number}"),
        850..880 => format!("https://{host}/{raw}?q={raw}&n={number}"),
        880..920 => format!("https://{host}/ü?q=%25&p=%C3%A4%2520{number}&e="),
        920..940 => format!("https://{host}/%7Euser/a%2Fb/{number}?x=a+b&y=[1]&z='{{q}}'|\\"),
        940..950 => format!("https://{host}"),
        950..960 => format!("HTTPS://WWW.Example.COM/TeSt/{number}"),
        960..970 => {
            format!("http://{}/{path}/{number}", chance.pick(INTERNATIONAL_HOSTS).0)
        }
        970..976 => format!("mailto:team{number}@example.com?subject=Hello%20there"),
        976..980 => format!("tel:+100{number}"),
        980..988 => format!("com.example.app://open?item={number}"),
        988..990 => format!("market://details?id=com.example.app{number}"),
        990..997 => long(&format!("https://{host}/{path}?n={number}"), 2_049),
        997..999 => long(&format!("https://{host}/{path}?n={number}"), 8_192),
        _ => format!("https://{host}/redirect?to=https://{host}/{path}?a=1&b={number}"),
    }
}

/// `start`, filled up to `length` characters.
fn long(start: &str, length: usize) -> String {
    let mut text = format!("{start}&long=");
    text.extend(
        std::iter::repeat_n("abcdefghij", length / 10).flat_map(str::chars).take(length - text.len()),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_holds_every_kind_of_destination() {
        let all: Vec<String> = (0..5_000).map(|index| destination(1, index)).collect();
        for part in
            ["?abc", "mailto:", "tel:", "com.example.app://", "产品", "bücher", "%25", "HTTPS://", " "]
        {
            assert!(all.iter().any(|text| text.contains(part)), "{part}");
        }
        for length in [2_049, 8_192] {
            assert!(all.iter().any(|text| text.len() == length), "{length}");
        }
    }

    #[test]
    fn an_account_holds_every_form_of_the_optional_fields() {
        let counts: Vec<_> = (0..2_000).map(|index| back_half_count(1, index)).collect();
        for form in
            [Field::Absent, Field::Null, Field::Value(0), Field::Value(1), Field::Value(2), Field::Value(3)]
        {
            assert!(counts.contains(&form), "{form:?}");
        }
        let titles: Vec<_> = (0..2_000).map(|index| title(1, index)).collect();
        for form in [Field::Absent, Field::Null, Field::Value(String::new())] {
            assert!(titles.contains(&form), "{form:?}");
        }
    }

    #[test]
    fn no_link_has_a_tag_twice() {
        for index in 0..2_000 {
            let tags = tags(1, index).value().cloned().unwrap_or_default();
            let mut unique = tags.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), tags.len(), "{tags:?}");
        }
    }
}
