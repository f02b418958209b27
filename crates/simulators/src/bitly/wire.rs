//! The JSON that the vendor sends, written by hand into one buffer: a page of a hundred links costs a fraction
//! of a millisecond, so that the simulator is never what a benchmark measures.

use std::io::Write as _;

use super::{
    account::Account,
    link::{DeepLink, Field, Link},
    listing::Page,
    records::RecordFault,
    shape::Group,
};
use crate::{
    date,
    encoding::{self, Escapes, write_json_string},
};

const PLAIN: Escapes = Escapes { ascii: false, slashes: false };
/// One link takes about this many bytes.
const LINK_BYTES: usize = 800;

/// What stands under `pagination`.
pub(super) enum Pagination {
    /// The key is missing.
    Missing,
    /// Neither cursor nor URL, only the size.
    WithoutCursor,
    /// The cursor (empty at the end) and the URL of the next page (empty at the end).
    /// With a total if the page tells it, as it stands in the JSON.
    Next { cursor: String, url: String, total: Option<String> },
}

/// Where answers say that they come from.
pub(super) struct Origin {
    /// Scheme, host and prefix up to and including `/v4`.
    pub(super) base_url: String,
}

/// The body of one page.
pub(super) fn page(
    origin: &Origin,
    group: &Group,
    page: &Page,
    pagination: &Pagination,
    size: usize,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.links.len() * LINK_BYTES + 512);
    out.extend_from_slice(br#"{"links":["#);
    for (place, link) in page.links.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_link(&mut out, origin, &group.guid, link);
    }
    out.push(b']');
    match pagination {
        Pagination::Missing => {}
        Pagination::WithoutCursor => write!(out, r#","pagination":{{"size":{size}}}"#).expect(VEC),
        Pagination::Next { cursor, url, total } => {
            out.extend_from_slice(br#","pagination":{"next":"#);
            write_json_string(&mut out, url, PLAIN);
            out.extend_from_slice(br#","search_after":"#);
            write_json_string(&mut out, cursor, PLAIN);
            write!(out, r#","size":{size}"#).expect(VEC);
            if let Some(total) = total {
                write!(out, r#","total":{total}"#).expect(VEC);
            }
            out.push(b'}');
        }
    }
    out.push(b'}');
    out
}

const VEC: &str = "a Vec takes every write";
const PAIRED_QUOTES: &[u8] = br#""The "best" offers, "all" of them: {so to say}, "archived" or not""#;
const SINGLE_QUOTE: &[u8] = br#""A 7" single, {or} more""#;
const RAW_CONTROLS: &[u8] = b"\"Raw\x01control\tsigns,\nand\x1fa line\r\nend\"";

/// One link as an object.
pub(super) fn write_link(out: &mut Vec<u8>, origin: &Origin, group: &str, link: &Link) {
    let escapes = Escapes { ascii: link.looks.ascii, slashes: link.looks.slashes };
    let mut object = Object { out, escapes, first: true };
    object.date("created_at", link.created_at);
    object.text("id", &link.id());
    object.text("link", &format!("https://{}/{}", link.host, link.slug));
    object.back_halves(link);
    object.destination(link);
    object.title(link);
    if link.fault == Some(RecordFault::BrokenRecord) {
        object.out.extend_from_slice(br#","archived":fal,"tags":[,],"created_by"}"#);
        return;
    }
    object.bool("archived", link.archived);
    if link.fault == Some(RecordFault::Deleted) {
        object.bool("is_deleted", true);
    } else if link.looks.says_not_deleted {
        object.bool("is_deleted", false);
    }
    object.text("created_by", "chauncey");
    object.text("client_id", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567");
    object.tags(&link.tags);
    object.raw("launchpad_ids", b"[]");
    match (link.expires_at, link.looks.null_expiration) {
        (Some(end), _) => object.date("expiration_at", end),
        (None, true) => object.raw("expiration_at", b"null"),
        (None, false) => {}
    }
    if let Some(country) = link.looks.routing {
        object.routing(country);
    }
    object.deep_links(link);
    object.unknown_fields(link.looks.unknown_fields);
    object.key("references");
    object.out.extend_from_slice(br#"{"group":"#);
    write_json_string(object.out, &format!("{}/groups/{group}", origin.base_url), escapes);
    object.out.extend_from_slice(b"}}");
}

/// An object while it is written.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    escapes: Escapes,
    first: bool,
}

impl Object<'_> {
    fn key(&mut self, name: &str) {
        self.out.extend_from_slice(if self.first { b"{\"" } else { b",\"" });
        self.first = false;
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn raw(&mut self, name: &str, json: &[u8]) {
        self.key(name);
        self.out.extend_from_slice(json);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.key(name);
        write_json_string(self.out, text, self.escapes);
    }

    fn bool(&mut self, name: &str, value: bool) {
        self.raw(name, if value { b"true" } else { b"false" });
    }

    fn date(&mut self, name: &str, seconds: i64) {
        self.key(name);
        self.out.push(b'"');
        date::write_bitly(self.out, seconds);
        self.out.push(b'"');
    }

    fn texts<'t>(&mut self, name: &str, texts: impl Iterator<Item = &'t str>) {
        self.key(name);
        self.out.push(b'[');
        for (place, text) in texts.enumerate() {
            if place > 0 {
                self.out.push(b',');
            }
            write_json_string(self.out, text, self.escapes);
        }
        self.out.push(b']');
    }

    fn back_halves(&mut self, link: &Link) {
        let url = |slug: &String| {
            let path = if link.looks.encoded_back_halves { encoding::component(slug) } else { slug.clone() };
            format!("https://{}/{path}", link.host)
        };
        match &link.back_halves {
            Field::Absent => {}
            Field::Null => self.raw("custom_bitlinks", b"null"),
            Field::Value(slugs) => {
                let urls: Vec<String> = slugs.iter().map(url).collect();
                self.texts("custom_bitlinks", urls.iter().map(String::as_str));
            }
        }
    }

    fn tags(&mut self, tags: &Field<Vec<String>>) {
        match tags {
            Field::Absent => {}
            Field::Null => self.raw("tags", b"null"),
            Field::Value(tags) => self.texts("tags", tags.iter().map(String::as_str)),
        }
    }

    fn destination(&mut self, link: &Link) {
        match link.fault {
            Some(RecordFault::MissingLongUrl) => {}
            Some(RecordFault::NullLongUrl) => self.raw("long_url", b"null"),
            Some(RecordFault::EmptyLongUrl) => self.raw("long_url", br#""""#),
            Some(RecordFault::JavascriptDestination) => {
                self.text("long_url", "javascript:alert(document.domain)");
            }
            Some(RecordFault::SelfDestination) => {
                self.text("long_url", &format!("https://{}/{}", link.host, link.slug));
            }
            Some(RecordFault::BrokenRecord) => self.raw("long_url", b"<!ERR upstream timed out!>"),
            Some(RecordFault::ControlInTitle | RecordFault::QuotesInTitle | RecordFault::Deleted) | None => {
                self.text("long_url", &link.destination);
            }
        }
    }

    fn title(&mut self, link: &Link) {
        match link.fault {
            Some(RecordFault::ControlInTitle) => {
                self.raw("title", RAW_CONTROLS);
            }
            Some(RecordFault::QuotesInTitle) => {
                // An odd number of quotes turns inside and outside round for a reader that only counts them.
                let odd = link.created_at % 2 != 0;
                self.raw("title", if odd { SINGLE_QUOTE } else { PAIRED_QUOTES });
            }
            _ => match &link.title {
                Field::Absent => {}
                Field::Null => self.raw("title", b"null"),
                Field::Value(title) => self.text("title", title),
            },
        }
    }

    fn routing(&mut self, country: &str) {
        self.key("dynamic_routing");
        write!(
            self.out,
            r#"[{{"long_url":"https://{country}.example.com/landing","country_match":["{country}"],"country_exclude":[],"region_match":[],"region_exclude":[],"device_match":[],"device_exclude":[],"os_match":["iOS"],"os_exclude":[]}}]"#
        )
        .expect(VEC);
    }

    fn deep_links(&mut self, link: &Link) {
        let Some(target) = link.looks.deep_link else {
            if link.looks.unknown_fields != 1 {
                self.raw("deeplinks", b"[]");
            }
            return;
        };
        self.key("deeplinks");
        self.out.extend_from_slice(br#"[{"guid":"Ra1bcD2eF3h","bitlink":"#);
        write_json_string(self.out, &link.id(), self.escapes);
        self.deep_link(target);
    }

    fn deep_link(&mut self, target: DeepLink) {
        write!(
            self.out,
            r#","app_uri_path":"/store?id=123456","install_url":"{}","install_type":"promote_install","app_guid":"Ab1cdE2fG3h","os":"{}","created":"2024-05-01T10:00:00+0000","modified":"2024-05-01T10:00:00+0000","brand_guid":"Ba1bc23dE4F"}}]"#,
            target.install_url(),
            target.os()
        )
        .expect(VEC);
    }

    /// Fields that no documentation names; a reader has to let them pass.
    fn unknown_fields(&mut self, kind: u8) {
        match kind {
            0 => self.raw("campaign_ids", b"[]"),
            1 => self.raw("qr_code_ids", br#"["Qa1bc23dE4F"]"#),
            2 => self.raw("ai_summary", b"null"),
            3 => self.raw("_internal", br#"{"score":1.50,"big":9007199254740993,"nested":[{"x":null},[]]}"#),
            4 => {
                self.raw("campaign_ids", b"null");
                self.raw("is_favorite", b"false");
            }
            _ => {}
        }
    }
}

/// The answer to a question about the token's owner.
pub(super) fn user(account: &Account) -> serde_json::Value {
    serde_json::json!({
        "login": "chauncey",
        "name": "Chauncey Example",
        "is_active": true,
        "created": "2018-04-02T09:30:00+0000",
        "modified": "2024-11-05T17:00:12+0000",
        "is_sso_user": false,
        "is_2fa_enabled": true,
        "emails": [{"email": "chauncey@example.com", "is_primary": true, "is_verified": true}],
        "default_group_guid": account.default_group().guid,
    })
}

/// One group as an object.
pub(super) fn group(account: &Account, origin: &Origin, group: &Group) -> serde_json::Value {
    let bsds: Vec<&str> = if group.is_active { vec![account.domain()] } else { Vec::new() };
    serde_json::json!({
        "guid": group.guid,
        "organization_guid": account.organization(),
        "name": group.name,
        "bsds": bsds,
        "created": "2018-04-02T09:30:00+0000",
        "modified": "2024-11-05T17:00:12+0000",
        "is_active": group.is_active,
        "role": "org-admin",
        "references": {"organization": format!("{}/organizations/{}", origin.base_url, account.organization())},
    })
}

/// The body of an error: `message` is the machine's code, `description` is for people.
pub(super) fn error(message: &str, description: &str, resource: &str) -> serde_json::Value {
    let mut body = serde_json::json!({"message": message, "description": description, "resource": resource});
    // Limits carry the first three only.
    if !message.ends_with("LIMIT_EXCEEDED") {
        body["errors"] = serde_json::json!([]);
    }
    body
}

/// The body of an error about one parameter.
pub(super) fn field_error(resource: &str, field: &str) -> serde_json::Value {
    serde_json::json!({
        "message": format!("INVALID_ARG_{}", field.to_uppercase()),
        "description": "The value provided is invalid.",
        "resource": resource,
        "errors": [{"field": field, "error_code": "invalid", "message": format!("{field} is invalid")}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitly::listing::{self, Archived, Query};

    fn whole_list(account: &Account) -> Vec<u8> {
        let query = Query { size: 2_000, archived: Archived::Both, ..Query::default() };
        let group = account.default_group();
        let origin = Origin { base_url: "http://127.0.0.1/v4".to_owned() };
        let found = listing::page(account, group, &query);
        let end = Pagination::Next { cursor: String::new(), url: String::new(), total: None };
        page(&origin, group, &found, &end, 2_000)
    }

    #[test]
    fn without_faults_every_byte_is_valid_json() {
        let account = Account::generate(2_000, 1);
        let parsed: serde_json::Value = serde_json::from_slice(&whole_list(&account)).unwrap();
        let links = parsed["links"].as_array().unwrap();
        assert_eq!(links.len(), 2_000);
        for (index, link) in (0..).zip(links) {
            let expected =
                account.link(&account.edits(), crate::bitly::edits::Position::generated(index)).unwrap();
            assert_eq!(link["id"], expected.id());
            assert_eq!(link["long_url"], expected.destination);
            assert_eq!(link["title"].as_str(), expected.title.value().map(String::as_str));
            assert_eq!(link["archived"], expected.archived);
            assert!(link["created_at"].as_str().unwrap().ends_with("+0000"));
        }
    }

    #[test]
    fn a_broken_record_has_balanced_brackets_and_quotes_and_spoils_only_itself() {
        let account = Account::generate(3, 1).with_faults(&"broken-record@1".parse().unwrap());
        let text = String::from_utf8(whole_list(&account)).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_err());
        let record = text.split("{\"created_at\"").nth(2).unwrap();
        let record = format!("{{\"created_at\"{}", record.trim_end_matches(','));
        assert!(serde_json::from_str::<serde_json::Value>(&record).is_err());
        assert_eq!(record.matches('{').count(), record.matches('}').count());
        assert_eq!(record.matches('"').count() % 2, 0);
    }

    #[test]
    fn a_spoiled_title_leaves_the_rest_of_its_record_whole() {
        for fault in ["control-in-title@0x40", "quotes-in-title@0x40"] {
            let account = Account::generate(40, 1).with_faults(&fault.parse().unwrap());
            let mut text = String::from_utf8(whole_list(&account)).unwrap();
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_err(), "{fault}");
            for spoiled in [PAIRED_QUOTES, SINGLE_QUOTE, RAW_CONTROLS] {
                text = text.replace(std::str::from_utf8(spoiled).unwrap(), "\"mended\"");
            }
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert!(parsed["links"].as_array().unwrap().iter().all(|link| link["title"] == "mended"));
        }
    }
}
