//! One number for everything that is written of a link.

use std::fmt;

use db::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::{Content, Link, NewLink, Place};

/// The first 128 bits of a SHA-256 over every field, each with its tag and length.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 16]);

impl Digest {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// From stored bytes; `None` if there are not 16.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The digest of what [`insert_links`](crate::insert_links) writes for this link.
pub fn digest(link: &NewLink) -> Digest {
    digest_of(&link.content, &link.slugs)
}

/// The same, of a link that was read back.
pub fn digest_of_read(link: &Link) -> Digest {
    let places: Vec<Place> =
        link.slugs.iter().map(|s| Place { domain_id: s.domain_id, slug: s.slug.clone() }).collect();
    digest_of(&link.content, &places)
}

/// The digest of a content on its slugs. The order of tags and slugs means nothing.
pub fn digest_of(content: &Content, slugs: &[Place]) -> Digest {
    // Taken apart, so that a new field cannot be forgotten here.
    let Content {
        destination,
        title,
        notes,
        folder,
        tags,
        redirect_code,
        query_passthrough,
        enabled,
        archived,
        expires_at,
        expired_url,
        password_protected,
        ios_url,
        android_url,
        geo,
        utm,
        imported_clicks,
        external_id,
        created_at,
    } = content;
    let mut fields = Fields(Sha256::new());
    // Tags are part of stored digests: they are never given another meaning.
    fields.text(1, Some(destination.as_str()));
    fields.text(2, title.as_ref().map(|text| text.as_str()));
    fields.text(3, notes.as_ref().map(|text| text.as_str()));
    fields.text(4, folder.as_ref().map(|name| name.as_str()));
    fields.number(5, redirect_code.map(|code| i64::from(code.number())));
    fields.number(6, Some(i64::from(*query_passthrough)));
    fields.number(7, Some(i64::from(*enabled)));
    fields.number(8, Some(i64::from(*archived)));
    fields.number(9, expires_at.map(Timestamp::micros));
    fields.text(10, expired_url.as_ref().map(|url| url.as_str()));
    fields.number(11, Some(i64::from(*password_protected)));
    fields.text(12, ios_url.as_ref().map(|url| url.as_str()));
    fields.text(13, android_url.as_ref().map(|url| url.as_str()));
    fields.text(14, geo.as_ref().map(|json| json.as_str()));
    fields.text(15, utm.as_ref().map(|json| json.as_str()));
    fields.number(16, *imported_clicks);
    fields.text(17, external_id.as_ref().map(|name| name.as_str()));
    fields.number(18, Some(created_at.micros()));
    let mut names: Vec<&str> = tags.iter().map(|tag| tag.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().for_each(|name| fields.text(19, Some(name)));
    let mut places: Vec<&Place> = slugs.iter().collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        fields.number(20, Some(place.domain_id.get()));
        fields.text(21, Some(place.slug.as_str()));
    }
    fields.finish()
}

struct Fields(Sha256);

impl Fields {
    /// Absent fields leave no trace; an empty text does.
    fn text(&mut self, tag: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.0.update([tag]);
            self.0.update((text.len() as u64).to_le_bytes());
            self.0.update(text);
        }
    }

    fn number(&mut self, tag: u8, number: Option<i64>) {
        if let Some(number) = number {
            self.0.update([tag]);
            self.0.update(number.to_le_bytes());
        }
    }

    fn finish(self) -> Digest {
        let hash = self.0.finalize();
        let mut bytes = [0u8; 16];
        bytes.copy_from_slice(&hash[..16]);
        Digest(bytes)
    }
}

#[cfg(test)]
mod tests {
    use db::Id;

    use super::*;
    use crate::values::{Json, Name, Text};
    use crate::{Destination, Geo, RedirectCode, Slug};

    fn content() -> Content {
        Content::to(Destination::new("https://example.com/").unwrap(), Timestamp::from_micros(1))
    }

    fn place(domain: i64, slug: &str) -> Place {
        Place { domain_id: Id::from_stored(domain), slug: Slug::new(slug).unwrap() }
    }

    #[test]
    fn every_field_changes_the_digest() {
        let url = || Some(Destination::new("https://example.com/x").unwrap());
        type Edit = fn(&mut Content);
        let changes: [(&str, Edit); 16] = [
            ("destination", |c| c.destination = Destination::new("https://example.com/a").unwrap()),
            ("title", |c| c.title = Some(Text::new(""))),
            ("notes", |c| c.notes = Some(Text::new(""))),
            ("folder", |c| c.folder = Some(Name::new("x").unwrap())),
            ("tags", |c| c.tags = vec![Name::new("x").unwrap()]),
            ("redirect_code", |c| c.redirect_code = Some(RedirectCode::Found)),
            ("query_passthrough", |c| c.query_passthrough = false),
            ("enabled", |c| c.enabled = false),
            ("archived", |c| c.archived = true),
            ("expires_at", |c| c.expires_at = Some(Timestamp::from_micros(0))),
            ("password_protected", |c| c.password_protected = true),
            ("geo", |c| c.geo = Some(Geo::default().into())),
            ("utm", |c| c.utm = Some(Json::new("{}").unwrap())),
            ("imported_clicks", |c| c.imported_clicks = Some(0)),
            ("external_id", |c| c.external_id = Some(Name::new("x").unwrap())),
            ("created_at", |c| c.created_at = Timestamp::from_micros(2)),
        ];
        let mut seen = vec![("nothing", digest_of(&content(), &[]))];
        for (name, change) in changes {
            let mut content = content();
            change(&mut content);
            seen.push((name, digest_of(&content, &[])));
        }
        for (name, content) in [
            ("expired_url", Content { expired_url: url(), ..content() }),
            ("ios_url", Content { ios_url: url(), ..content() }),
            ("android_url", Content { android_url: url(), ..content() }),
        ] {
            seen.push((name, digest_of(&content, &[])));
        }
        seen.push(("slug", digest_of(&content(), &[place(1, "a")])));
        seen.push(("domain", digest_of(&content(), &[place(2, "a")])));
        seen.push(("two slugs", digest_of(&content(), &[place(1, "a"), place(1, "b")])));
        for (i, (a, one)) in seen.iter().enumerate() {
            for (b, other) in &seen[i + 1..] {
                assert_ne!(one, other, "{a} and {b}");
            }
        }
    }

    #[test]
    fn the_order_of_tags_and_slugs_means_nothing() {
        let tags =
            |names: [&str; 3]| Content { tags: names.map(|n| Name::new(n).unwrap()).to_vec(), ..content() };
        let one = digest_of(&tags(["a", "b", "b"]), &[place(1, "a"), place(2, "b")]);
        assert_eq!(one, digest_of(&tags(["b", "a", "a"]), &[place(2, "b"), place(1, "a")]));
    }
}
