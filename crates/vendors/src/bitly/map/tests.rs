use serde_json::{Value, json};

use super::*;

/// A record as the list gives it.
fn record() -> Value {
    json!({
        "created_at": "2026-01-31T08:15:00+0000",
        "id": "go.example.com/3AbCdEf",
        "link": "https://go.example.com/3AbCdEf",
        "custom_bitlinks": ["https://go.example.com/spring"],
        "long_url": "https://www.example.com/sale?x=1",
        "title": "Spring sale",
        "archived": false,
        "created_by": "user1",
        "client_id": "0a1b",
        "tags": ["mail", "q1"],
        "launchpad_ids": [],
        "deeplinks": [],
        "references": {"group": "https://api-ssl.bitly.com/v4/groups/Ba1bc23dE4F"},
    })
}

/// The record with fields replaced; a field set to this is taken out.
const ABSENT: &str = "\u{1}absent";

fn with(fields: Value) -> Vec<u8> {
    let mut record = record();
    for (name, value) in fields.as_object().unwrap() {
        record[name] = value.clone();
        if value == ABSENT {
            record.as_object_mut().unwrap().remove(name);
        }
    }
    serde_json::to_vec(&record).unwrap()
}

fn link_of(raw: &[u8]) -> IncomingLink {
    match BitlyMapper.map(raw) {
        Ok(Incoming::Link(link)) => *link,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(raw)),
    }
}

fn link(fields: Value) -> IncomingLink {
    link_of(&with(fields))
}

fn unreadable(raw: &[u8]) -> Unreadable {
    match BitlyMapper.map(raw) {
        Err(unreadable) => unreadable,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(raw)),
    }
}

fn paths(link: &IncomingLink) -> Vec<String> {
    link.addresses.iter().map(|address| format!("{}/{}", address.host, address.slug)).collect()
}

#[test]
fn a_plain_record_is_read_whole() {
    let raw = with(json!({}));
    let link = link_of(&raw);
    assert_eq!(link.source_id, "go.example.com/3AbCdEf");
    assert_eq!(link.destination, "https://www.example.com/sale?x=1");
    assert_eq!(link.title.as_deref(), Some("Spring sale"));
    assert_eq!(link.tags, ["mail", "q1"]);
    assert_eq!(link.created_at.unwrap().rfc3339(), "2026-01-31T08:15:00Z");
    assert_eq!((link.archived, link.disabled, link.password_protected), (false, false, false));
    assert!(link.expires_at.is_none() && link.left_behind.is_empty() && link.geo.is_empty());
    assert_eq!(link.provenance.as_bytes(), raw);
}

#[test]
fn a1_a2_b17_the_hash_and_every_back_half_are_addresses() {
    let url = |slug: &str| format!("https://go.example.com/{slug}");
    for (back_halves, expected) in [
        (json!(ABSENT), vec!["3AbCdEf"]),
        (json!(null), vec!["3AbCdEf"]),
        (json!([]), vec!["3AbCdEf"]),
        (json!([url("Sale")]), vec!["3AbCdEf", "Sale"]),
        (json!([url("c"), url("b"), url("a")]), vec!["3AbCdEf", "c", "b", "a"]),
        (json!([url("c"), null, url("c"), url("3AbCdEf")]), vec!["3AbCdEf", "c"]),
        (json!([url("C"), url("c")]), vec!["3AbCdEf", "C", "c"]),
    ] {
        let link = link(json!({"custom_bitlinks": back_halves}));
        let slugs: Vec<&str> = link.addresses.iter().map(|address| address.slug.as_str()).collect();
        assert_eq!(slugs, expected, "{back_halves}");
    }
}

#[test]
fn b4_a_slash_in_the_slug_is_kept() {
    let link =
        link(json!({"id": "Go.Example.com/a/b", "custom_bitlinks": ["https://other.example.com/c/d/"]}));
    assert_eq!(paths(&link), ["go.example.com/a/b", "other.example.com/c/d/"]);
    assert_eq!(link.source_id, "Go.Example.com/a/b");
}

#[test]
fn b13_a_back_half_and_the_slug_of_an_id_are_decoded_once() {
    for (url, slug) in [
        ("https://go.example.com/%C3%BC", "ü"),
        ("https://go.example.com/ü", "ü"),
        ("https://go.example.com/a%2525?utm=1#x", "a%25"),
        ("https://go.example.com/%F0%9F%9A%80", "🚀"),
    ] {
        let link = link(json!({"id": "go.example.com/x", "custom_bitlinks": [url]}));
        assert_eq!(paths(&link), ["go.example.com/x".to_owned(), format!("go.example.com/{slug}")]);
    }
    // An id was once left encoded, so as not to touch what Bitly calls the link by. But a slug here never holds a
    // percent sign, so that such a link could not come over at all; the source id is what stays as received.
    for (id, slug) in [
        ("go.example.com/%C3%BC", "ü"),
        ("go.example.com/a%2525", "a%25"),
        ("go.example.com/a%2Fb", "a/b"),
        ("go.example.com/a?b", "a?b"),
        ("go.example.com/%FF", "%FF"),
        ("go.example.com/100%", "100%"),
    ] {
        let link = link(json!({"id": id, "custom_bitlinks": []}));
        assert_eq!(paths(&link), [format!("go.example.com/{slug}")]);
        assert_eq!(link.source_id, id);
    }
}

#[test]
fn b13_an_id_and_a_back_half_that_are_the_same_address_are_one() {
    let link = link(json!({"id": "tübingen.example/ü", "custom_bitlinks": [
        "https://xn--tbingen-n2a.example/%C3%BC", "https://TÜBINGEN.example.:443/ü",
    ]}));
    assert_eq!(paths(&link), ["xn--tbingen-n2a.example/ü"]);
}

#[test]
fn the_host_of_an_id_is_the_one_that_rules_for_hosts_name() {
    for (host, expected) in [
        ("go.example.com:443", "go.example.com"),
        ("go.example.com.", "go.example.com"),
        ("GO.Example.com", "go.example.com"),
        ("tübingen.example", "xn--tbingen-n2a.example"),
        ("Bit.ly.", "bit.ly"),
        ("Go Example", "go example"),
        ("GO%2ECOM", "go%2ecom"),
    ] {
        let id = format!("{host}/x");
        let link = link(json!({"id": id, "custom_bitlinks": []}));
        assert_eq!(paths(&link), [format!("{expected}/x")]);
        assert_eq!(link.source_id, id);
    }
}

#[test]
fn a25_a57_destinations_are_kept_byte_for_byte() {
    let long = format!("https://example.com/{}", "ü".repeat(16_000));
    for destination in [
        "https://example.com/ü?q=%25",
        "https://example.com/?abc#123",
        "https://example.com/a b/产品",
        "http://tübingen.example/",
        "javascript:alert(1)",
        "com.example.app://open?x=1",
        &long,
    ] {
        assert_eq!(link(json!({"long_url": destination})).destination, destination);
    }
}

#[test]
fn blanks_and_controls_around_a_destination_are_none_of_it() {
    let url = "https://example.com/a b\u{a0}";
    for (before, after) in [(" ", ""), ("", " "), ("\t\r\n ", "\n"), ("\u{1}", "\u{1f}"), ("\u{c}", "\u{b}")]
    {
        let received = format!("{before}{url}{after}");
        let link = link(json!({
            "long_url": &received,
            "dynamic_routing": [{"long_url": &received, "country_match": ["DE"]}],
            "deeplinks": [{"long_url": "x", "os": "ios", "install_url": &received}],
        }));
        assert_eq!((link.destination.as_str(), link.geo["DE"].as_str()), (url, url), "{received:?}");
        assert_eq!(link.ios_url.as_deref(), Some(url), "{received:?}");
        let provenance: Value = serde_json::from_str(&link.provenance).unwrap();
        assert_eq!(provenance["long_url"], received, "what is kept of the record stays as received");
    }
}

#[test]
fn a3_a_link_without_destination_is_named() {
    for (value, detail) in [
        (json!(ABSENT), "/long_url is missing"),
        (json!(null), "/long_url is missing"),
        (json!(""), "/long_url is \"\""),
        (json!(" \t"), "/long_url is \" \\t\""),
    ] {
        let unreadable = unreadable(&with(json!({"long_url": value})));
        assert_eq!(unreadable.reason, Reason::new("missing_destination", detail));
        assert_eq!(unreadable.source_id.as_deref(), Some("go.example.com/3AbCdEf"));
        assert_eq!(unreadable.label.as_deref(), Some("3AbCdEf"));
    }
}

#[test]
fn a_deleted_link_is_left_out_even_without_destination() {
    let raw = with(json!({"is_deleted": true, "long_url": null}));
    let Ok(Incoming::Filtered { source_id, label, reason }) = BitlyMapper.map(&raw) else {
        panic!("left out")
    };
    assert_eq!((source_id.as_str(), label.as_deref()), ("go.example.com/3AbCdEf", Some("3AbCdEf")));
    assert_eq!(reason.code, "deleted_at_source");
    for kept in [json!(false), json!(null), json!(ABSENT)] {
        link(json!({"is_deleted": kept}));
    }
}

#[test]
fn b1_an_archived_link_stays_enabled() {
    let link = link(json!({"archived": true}));
    assert_eq!((link.archived, link.disabled), (true, false));
}

#[test]
fn c36_a_record_without_id_is_refused_alone() {
    for (id, code) in [
        (json!(ABSENT), "missing_id"),
        (json!(null), "missing_id"),
        (json!(""), "missing_id"),
        (json!(7), "unexpected_type"),
        (json!("no-slash"), "unreadable_id"),
        (json!("/x"), "unreadable_id"),
        (json!("go.example.com/"), "unreadable_id"),
    ] {
        assert_eq!(unreadable(&with(json!({"id": id}))).reason.code, code, "{id}");
    }
}

#[test]
fn a69_e71_dates_are_instants_or_said_to_be_lost() {
    for (text, expected) in [
        (json!("2026-03-01T10:00:00+0000"), Some("2026-03-01T10:00:00Z")),
        (json!("2026-03-01T10:00:00Z"), Some("2026-03-01T10:00:00Z")),
        (json!("2026-03-01T10:00:00+00:00"), Some("2026-03-01T10:00:00Z")),
        (json!("2026-03-01T10:00:00+03:00"), Some("2026-03-01T07:00:00Z")),
        (json!("0001-01-01T00:00:00+0000"), None),
        (json!(""), None),
        (json!(null), None),
        (json!(ABSENT), None),
    ] {
        let link = link(json!({"created_at": text, "expiration_at": text}));
        assert_eq!(link.expires_at.map(|at| format!("{at}")).as_deref(), expected, "{text}");
        assert_eq!(link.created_at, link.expires_at, "{text}");
        assert!(link.left_behind.is_empty());
    }
    for text in ["2 days", "2026-03-01T10:00:00", "2026-02-30T10:00:00+0000"] {
        let link = link(json!({"created_at": text}));
        assert_eq!((link.created_at, link.left_behind), (None, vec!["created_at"]), "{text}");
        let reason = unreadable(&with(json!({"expiration_at": text}))).reason;
        assert_eq!(reason.code, "unreadable_date");
        assert!(
            reason.detail.contains("/expiration_at") && reason.detail.contains(text),
            "{}",
            reason.detail
        );
    }
}

#[test]
fn nulls_are_nothing_everywhere() {
    let nothing = json!({
        "created_at": null, "link": null, "custom_bitlinks": null, "title": null, "archived": null, "is_deleted": null,
        "created_by": null, "client_id": null, "tags": null, "launchpad_ids": null, "deeplinks": null, "references": null,
        "expiration_at": null, "dynamic_routing": null, "qr_code_ids": null, "campaign_ids": null, "new_field": null,
    });
    let link = link(nothing);
    assert_eq!((link.title, link.tags.len(), link.addresses.len()), (None, 0, 1));
    assert!(link.left_behind.is_empty());
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_place_and_value() {
    for (fields, detail) in [
        (json!({"long_url": 5}), "/long_url is not a text but 5"),
        (json!({"title": ["x"]}), "/title is not a text but [\"x\"]"),
        (json!({"archived": "no"}), "/archived is not true or false but \"no\""),
        (json!({"is_deleted": 1}), "/is_deleted is not true or false but 1"),
        (json!({"tags": "mail"}), "/tags is not a list but \"mail\""),
        (json!({"tags": ["mail", {}]}), "/tags/1 is not a text but {}"),
        (json!({"created_at": 1769847300}), "/created_at is not a text but 1769847300"),
        (json!({"expiration_at": true}), "/expiration_at is not a text but true"),
        (json!({"dynamic_routing": {}}), "/dynamic_routing is not a list but {}"),
        (json!({"dynamic_routing": [7]}), "/dynamic_routing/0"),
        (json!({"deeplinks": [{"os": 5}]}), "/deeplinks/0"),
    ] {
        let unreadable = unreadable(&with(fields));
        assert_eq!(unreadable.reason.code, "unexpected_type");
        assert!(unreadable.reason.detail.contains(detail), "{}", unreadable.reason.detail);
        assert_eq!(unreadable.label.as_deref(), Some("3AbCdEf"));
    }
    for (raw, code) in [
        ("null", "unexpected_type"),
        ("[]", "unexpected_type"),
        ("7", "unexpected_type"),
        ("\"x\"", "unexpected_type"),
        ("", "malformed_json"),
    ] {
        assert_eq!(unreadable(raw.as_bytes()).reason.code, code, "{raw}");
    }
}

#[test]
fn a_back_half_that_is_no_address_is_named_and_costs_nothing_but_itself() {
    for (bad, code) in [
        (json!("https://go.example.com"), "unreadable_address"),
        (json!("https://go.example.com/%FF"), "unreadable_address"),
        (json!("mailto:a@example.com"), "unreadable_address"),
        (json!(""), "unreadable_address"),
        (json!("https://go.example.com/a%00b"), "nul_in_text"),
        (json!(1), "unexpected_type"),
        (json!({}), "unexpected_type"),
    ] {
        let link = link(
            json!({"custom_bitlinks": ["https://go.example.com/ok", bad, "https://go.example.com/older"]}),
        );
        let slugs = ["go.example.com/3AbCdEf", "go.example.com/ok", "go.example.com/older"];
        assert_eq!(paths(&link), slugs, "{bad}");
        let [reason] = link.bad_addresses.as_slice() else { panic!("{bad}: {:?}", link.bad_addresses) };
        assert_eq!(reason.code, code, "{bad}");
        assert!(reason.detail.starts_with("/custom_bitlinks/1 "), "{}", reason.detail);
    }
    assert_eq!(link(json!({})).bad_addresses, []);
}

#[test]
fn back_halves_that_are_no_list_cost_the_back_halves_alone() {
    let link = link(json!({"custom_bitlinks": {"a": 1}}));
    assert_eq!(paths(&link), ["go.example.com/3AbCdEf"]);
    let reason = Reason::new("unexpected_type", "/custom_bitlinks is not a list but {\"a\":1}");
    assert_eq!(link.bad_addresses, [reason]);
}

#[test]
fn an_id_whose_slug_hides_a_nul_costs_the_hash_alone() {
    let link = link(json!({"id": "go.example.com/a%00b"}));
    assert_eq!(paths(&link), ["go.example.com/spring"]);
    assert_eq!((link.source_id.as_str(), link.bad_addresses.len()), ("go.example.com/a%00b", 1));
    assert_eq!(link.bad_addresses[0].code, "nul_in_text");
}

#[test]
fn routing_by_country_or_system_alone_comes_over() {
    let rule = |fields: Value| {
        let mut rule = json!({"long_url": "https://x.example/", "country_match": [], "country_exclude": [],
            "region_match": [], "region_exclude": [], "device_match": [], "device_exclude": [], "os_match": [], "os_exclude": []});
        rule.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        rule
    };
    let countries = link(json!({"dynamic_routing": [
        rule(json!({"country_match": ["de", "AT"], "long_url": "https://x.example/de"})),
        rule(json!({"country_match": ["FR"], "region_match": null})),
    ]}));
    let geo: Vec<(&str, &str)> =
        countries.geo.iter().map(|(country, url)| (country.as_str(), url.as_str())).collect();
    assert_eq!(
        geo,
        [("AT", "https://x.example/de"), ("DE", "https://x.example/de"), ("FR", "https://x.example/")]
    );
    assert!(countries.left_behind.is_empty());

    for (fields, ios, android) in [
        (json!({"os_match": ["iOS"]}), true, false),
        (json!({"os_match": ["Android"]}), false, true),
        (json!({"os_match": ["ios", "android"]}), true, true),
        (json!({"device_match": ["iPhone", "iPad"]}), true, false),
        (json!({"device_match": ["Android"]}), false, true),
    ] {
        let link = link(json!({"dynamic_routing": [rule(fields.clone())]}));
        assert_eq!((link.ios_url.is_some(), link.android_url.is_some()), (ios, android), "{fields}");
        assert!(link.left_behind.is_empty());
    }

    for fields in [
        json!({}),
        json!({"country_match": ["DE"], "os_match": ["iOS"]}),
        json!({"country_match": ["DE"], "region_match": ["BY"]}),
        json!({"country_exclude": ["DE"]}),
        json!({"os_match": ["Windows"]}),
        json!({"device_match": ["iPhone"]}),
        json!({"os_match": ["iOS"], "language_match": ["de"]}),
        json!({"country_match": ["Germany"]}),
        json!({"country_match": ["DE"], "long_url": null}),
    ] {
        let link = link(json!({"dynamic_routing": [rule(fields.clone())]}));
        assert!(link.geo.is_empty() && link.ios_url.is_none() && link.android_url.is_none(), "{fields}");
        assert_eq!(link.left_behind, ["dynamic_routing"], "{fields}");
    }
}

#[test]
fn the_first_rule_for_a_country_counts_and_the_other_is_listed() {
    let link = link(json!({"dynamic_routing": [
        {"long_url": "https://x.example/1", "country_match": ["DE"]},
        {"long_url": "https://x.example/2", "country_match": ["DE"]},
    ]}));
    assert_eq!((link.geo["DE"].as_str(), link.left_behind), ("https://x.example/1", vec!["dynamic_routing"]));
}

#[test]
fn deep_links_give_where_to_install_and_say_what_is_lost() {
    let ios = "https://apps.example.com/ios/id1";
    for (entry, url, is_whole) in [
        (json!({"os": "ios", "install_url": ios, "app_uri_path": ""}), Some(ios), true),
        (json!({"os": "ios", "install_url": ios, "app_uri_path": "/store?id=1"}), Some(ios), false),
        (json!({"os": "ios", "install_url": "", "app_uri_path": "/store"}), None, false),
        (json!({"os": "ios", "install_url": ios, "install_type": "no_install"}), None, false),
        (json!({"os": "windows", "install_url": ios}), None, false),
        (json!({"install_url": ios}), None, false),
    ] {
        let link = link(json!({"deeplinks": [entry.clone()]}));
        assert_eq!(link.ios_url.as_deref(), url, "{entry}");
        assert_eq!(link.left_behind.is_empty(), is_whole, "{entry}");
    }
    let both = link(json!({
        "dynamic_routing": [{"long_url": "https://x.example/", "os_match": ["iOS"]}],
        "deeplinks": [{"os": "ios", "install_url": ios}, {"os": "android", "install_url": "https://apps.example.com/a"}],
    }));
    assert_eq!(both.ios_url.as_deref(), Some("https://x.example/"));
    assert_eq!(both.android_url.as_deref(), Some("https://apps.example.com/a"));
    assert_eq!(both.left_behind, ["deeplinks"]);
}

#[test]
fn a_deep_link_that_cannot_be_expressed_is_noted() {
    let ios = "https://apps.example.com/ios/id1";
    for (entry, line) in [
        (
            json!({"os": "ios", "install_url": ios, "app_uri_path": "/store?id=1"}),
            "Deep link for ios: /store?id=1, install from https://apps.example.com/ios/id1",
        ),
        (json!({"os": "ios", "install_url": "", "app_uri_path": "/a\nb"}), r"Deep link for ios: /a\nb"),
        (
            json!({"os": "windows", "install_url": ios, "app_uri_path": null}),
            "Deep link for windows: install from https://apps.example.com/ios/id1",
        ),
        (json!({"guid": "x"}), "Deep link: nothing said"),
    ] {
        assert_eq!(link(json!({"deeplinks": [entry]})).notes.as_deref(), Some(line));
    }
    let several = link(json!({"deeplinks": [
        {"os": "ios", "app_uri_path": "/a"},
        {"os": "android", "install_url": "https://apps.example.com/a"},
        {"os": "android", "app_uri_path": "/b"},
    ]}));
    assert_eq!(several.notes.as_deref(), Some("Deep link for ios: /a\nDeep link for android: /b"));
    let whole = link(json!({"deeplinks": [{"os": "ios", "install_url": ios}]}));
    assert_eq!((whole.notes, link(json!({})).notes), (None, None));
}

#[test]
fn what_has_no_place_here_is_listed() {
    let link = link(
        json!({"qr_code_ids": ["Qa1"], "campaign_ids": ["Ca1"], "launchpad_ids": ["Ma1"], "new_field": [1]}),
    );
    assert_eq!(link.left_behind, ["qr_codes", "campaigns", "launchpads"]);
}

#[test]
fn b5_a_spoiled_title_is_kept_as_it_was_meant_and_nothing_else_changes() {
    let clean = link_of(&with(json!({"title": "TITLE"})));
    for (raw, meant) in [
        (
            r#"The "best" offers, "all" of them: {so to say}, "archived" or not"#,
            r#"The "best" offers, "all" of them: {so to say}, "archived" or not"#,
        ),
        (r#"A 7" single, {or} more"#, r#"A 7" single, {or} more"#),
        (
            "Raw\u{1}control\tsigns,\nand\u{1f}a line\r\nend",
            "Raw\u{1}control\tsigns,\nand\u{1f}a line\r\nend",
        ),
        (r"C:\", r"C:\"),
        (r"C:\dir", r"C:\dir"),
    ] {
        let spoiled = String::from_utf8(with(json!({"title": "TITLE"}))).unwrap().replace("TITLE", raw);
        let link = link_of(spoiled.as_bytes());
        assert_eq!(link.title.as_deref(), Some(meant));
        let provenance: Value = serde_json::from_str(&link.provenance).unwrap();
        assert_eq!(provenance["title"], meant);
        let same = IncomingLink { title: clean.title.clone(), provenance: clean.provenance.clone(), ..link };
        assert_eq!(same, clean);
    }
}

#[test]
fn a_record_beyond_repair_names_its_id_and_the_place() {
    let raw = br#"{"created_at":"2026-01-31T08:15:00+0000","id":"go.example.com/3AbCdEf","long_url":<!ERR upstream timed out!>,"title":"x","archived":fal,"tags":[,],"created_by"}"#;
    let unreadable = unreadable(raw);
    assert_eq!(unreadable.reason.code, "malformed_json");
    assert!(unreadable.reason.detail.contains("line 1 column 83"), "{}", unreadable.reason.detail);
    assert_eq!(unreadable.source_id.as_deref(), Some("go.example.com/3AbCdEf"));
    assert_eq!(unreadable.label.as_deref(), Some("3AbCdEf"));
}

#[test]
fn a_field_told_twice_is_not_believed() {
    let raw = br#"{"id":"go.example.com/a","long_url":"https://a.example/","title":"x","long_url":"https://b.example/"}"#;
    let unreadable = unreadable(raw);
    assert_eq!(unreadable.reason.code, "malformed_json");
    assert!(unreadable.reason.detail.contains("duplicate field `long_url`"), "{}", unreadable.reason.detail);
}

#[test]
fn e59_e61_e63_text_that_no_database_takes_is_refused_alone() {
    let titled = |title: &[u8]| {
        let mut raw = br#"{"id":"go.example.com/a","long_url":"https://a.example/","title":""#.to_vec();
        raw.extend_from_slice(title);
        raw.extend_from_slice(b"\"}");
        raw
    };
    for (title, code) in [
        (&br"a\u0000b"[..], "nul_in_text"),
        (b"a\0b", "nul_in_text"),
        (br"\ud835", "lone_surrogate"),
        (br"\udd38\ud835", "lone_surrogate"),
        (b"\xff", "invalid_utf8"),
        (b"\xed\xa0\x80", "invalid_utf8"),
    ] {
        let unreadable = unreadable(&titled(title));
        assert_eq!(unreadable.reason.code, code);
        assert_eq!(unreadable.source_id.as_deref(), Some("go.example.com/a"));
    }
    assert_eq!(link_of(&titled(br"\ud835\udd38")).title.as_deref(), Some("𝔸"));
}

#[test]
fn numbers_and_order_of_the_stored_record_stay_as_received() {
    let raw = br#"{"id":"h/a", "long_url":"https://a.example/", "score":1.50, "big":9007199254740993, "access_token":"s3cr3t", "created_by":"a@example.com"}"#;
    let expected = r#"{"id":"h/a","long_url":"https://a.example/","score":1.50,"big":9007199254740993,"access_token":"[redacted]","created_by":"[redacted]"}"#;
    assert_eq!(link_of(raw).provenance, expected);
}

#[test]
fn what_it_says_of_itself_is_fit_for_people() {
    assert_eq!(BitlyMapper.vendor(), "bitly");
    assert!(BitlyMapper.vendor_hosts().contains(&"bit.ly"));
    assert!(BitlyMapper.vendor_hosts().iter().all(|host| **host == host.to_lowercase()));
    assert!(BitlyMapper.left_behind().iter().all(|sentence| sentence.ends_with('.')));
}

proptest::proptest! {
    #[test]
    fn nothing_that_comes_makes_it_panic(raw in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = BitlyMapper.map(&raw);
    }

    #[test]
    fn a_title_survives_whatever_is_in_it(title in "\\PC{0,40}") {
        let read = link(json!({"title": &title})).title;
        proptest::prop_assert_eq!(read, Some(title));
    }

    #[test]
    fn nothing_in_a_field_makes_it_panic(title in r#"[\\"{}\[\],:a1\x00-\x1f ]{0,40}"#) {
        let raw = format!(r#"{{"id":"h/a","title":"{title}","long_url":"https://a.example/","tags":["x"]}}"#);
        let _ = BitlyMapper.map(raw.as_bytes());
    }
}
