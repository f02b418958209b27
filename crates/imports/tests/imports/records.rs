//! What a record may hold, and which ones fail alone.

use db::Timestamp;
use engine::Status;
use links::{Slug, State};

use crate::world::{Record, World, counters, import_test, record, told};

/// A page of records under test between two good ones, which must come over whatever happens in between.
fn between(records: Vec<Record>) -> Vec<Record> {
    let mut all = vec![record("before", "old.example.com/before", "https://example.com/before")];
    all.extend(records);
    all.push(record("after", "old.example.com/after", "https://example.com/after"));
    all
}

import_test!(
    a1_3_a4_60_destinations_that_lead_nowhere_or_run_something_fail_alone_with_their_place,
    world,
    {
        let cases = [
            ("", "missing_destination"),
            ("javascript:alert(1)", "destination_scheme"),
            ("JaVaScRiPt:alert(1)", "destination_scheme"),
            ("data:text/html,<script>alert(1)</script>", "destination_scheme"),
            ("file:///etc/passwd", "destination_scheme"),
            ("vbscript:x", "destination_scheme"),
            ("\tjavascript:alert(1)", "invalid_destination"),
            ("java\nscript:alert(1)", "invalid_destination"),
            ("/relative", "invalid_destination"),
            ("https://", "invalid_destination"),
            ("https://go.example.com/slug8", "destination-of-another"),
            ("https://go.example.com/slug11", "self_reference"),
            ("HTTP://GO.example.com:80/slug12/", "self_reference"),
            ("https://go.example.com/%73lug13?x=1", "self_reference"),
        ];
        let records = cases
            .iter()
            .enumerate()
            .map(|(n, (to, _))| record(&format!("r{n}"), &format!("old.example.com/slug{n}"), to))
            .collect();
        world.account.set(&between(records));
        let report = world.import().await;
        assert_eq!((report.status, report.outcome), (Status::Completed, Some("partial")));
        let expected: Vec<_> = cases
            .iter()
            .enumerate()
            .filter(|(_, (_, code))| *code != "destination-of-another")
            .map(|(n, (_, code))| told(&format!("r{n}"), "failed", code))
            .collect();
        assert_eq!(world.reasons(&report).await, expected);
        assert_eq!(counters(&report), [3, 0, 0, 0, 0, 0, 13]);
        assert_eq!(
            world.slugs().await,
            ["after", "before", "slug10"].map(|slug| format!("go.example.com/{slug}"))
        );
        for entry in world.log(&report).await {
            assert!(entry.detail.contains("old.example.com/slug"), "names the place: {}", entry.detail);
        }
        // Failed records are kept whole.
        let kept = world.quarantined(&report).await;
        let first: Record = serde_json::from_slice(&kept[1].raw).unwrap();
        assert_eq!(
            (kept.len(), first.to.as_str(), kept[1].code.as_str()),
            (13, "javascript:alert(1)", "destination_scheme")
        );
    }
);

import_test!(a4_57_a_destination_of_32000_characters_comes_over_whole_and_one_more_is_refused, world, {
    let long = |length: usize| {
        let start = "https://example.com/?q=";
        format!("{start}{}", "ü".repeat(length - start.chars().count()))
    };
    let lengths = [2_049, 8_192, 32_000, 32_001];
    let records = lengths
        .iter()
        .map(|length| record(&length.to_string(), &format!("old.example.com/l{length}"), &long(*length)))
        .collect();
    world.account.set(&between(records));
    let report = world.import().await;
    assert_eq!(counters(&report), [5, 0, 0, 0, 0, 0, 1]);
    assert_eq!(world.reasons(&report).await, [told("32001", "failed", "destination_too_long")]);
    for length in &lengths[..3] {
        assert_eq!(world.leads(&format!("l{length}")).await, Some(long(*length)), "{length}");
    }
    assert!(world.verify(&report).await.holds);
});

import_test!(a4_51_a1_25_the_bytes_of_a_destination_are_kept, world, {
    let kept = [
        "https://example.com/?abc#123",
        "https://example.com/ü?q=%25",
        "http://tübingen.example/",
        "https://example.com/产品",
        "https://example.com/?a=1&b=2&b=3&&c",
        "HTTPS://Example.COM:443/a/../b",
        "https://example.com/a b+c%20d",
        "https://user:pw@example.com/'\"<>\\^`{|}",
        "market://details?id=x",
        "com.example.app://open?x=1",
        "mailto:a@example.com",
        "tel:+100",
    ];
    let records: Vec<Record> = kept
        .iter()
        .enumerate()
        .map(|(n, to)| record(&format!("r{n}"), &format!("old.example.com/k{n}"), to))
        .collect();
    world.account.set(&records);
    let report = world.import().await;
    assert_eq!(report.imported, 12, "{:?}", world.log(&report).await);
    for (n, to) in kept.iter().enumerate() {
        assert_eq!(world.leads(&format!("k{n}")).await.as_deref(), Some(*to));
    }
    assert!(world.verify(&report).await.holds);
});

import_test!(a3_46_a3_49_slugs_that_could_never_be_asked_for_fail_alone, world, {
    let longest = "x".repeat(256);
    let cases = [
        (".", "invalid_slug"),
        ("..", "invalid_slug"),
        ("a/../b", "invalid_slug"),
        ("abc?env=prod", "invalid_slug"),
        ("a#b", "invalid_slug"),
        ("a%20b", "invalid_slug"),
        ("a b", "invalid_slug"),
        ("", "invalid_slug"),
        (longest.as_str(), "invalid_slug"),
        ("robots.txt", "reserved_slug"),
        ("favicon.ico", "reserved_slug"),
        (".well-known/x", "reserved_slug"),
    ];
    let records = cases
        .iter()
        .enumerate()
        .map(|(n, (slug, _))| {
            record(&format!("r{n}"), &format!("old.example.com/{slug}"), "https://example.com/")
        })
        .collect();
    world.account.set(&between(records));
    // A dry run says the same before anything is written.
    for dry in [true, false] {
        let report = if dry { world.dry_run().await } else { world.import().await };
        assert_eq!(counters(&report), [2, 0, 0, 0, 0, 0, 12]);
        let expected: Vec<_> =
            cases.iter().enumerate().map(|(n, (_, code))| told(&format!("r{n}"), "failed", code)).collect();
        assert_eq!(world.reasons(&report).await, expected);
    }
    assert_eq!(world.slugs().await, ["go.example.com/after", "go.example.com/before"]);
});

import_test!(a3_38_a3_44_a3_48_b4_slugs_that_people_use_come_over_as_they_are, world, {
    let used = [
        "Abc",
        "a/b",
        "a/b/c",
        "구글",
        "🚀",
        "setup.sh",
        "photo.png",
        "v1.2",
        "api",
        "health",
        "rest",
        "a/",
        "1&utm=x",
    ];
    let mut records: Vec<Record> = used
        .iter()
        .enumerate()
        .map(|(n, slug)| record(&format!("r{n}"), &format!("old.example.com/{slug}"), "https://example.com/"))
        .collect();
    // NFD comes over as NFC.
    records.push(record("nfd", "old.example.com/o\u{308}", "https://example.com/o"));
    world.account.set(&records);
    let report = world.import().await;
    assert_eq!((report.imported, report.failed), (14, 0), "{:?}", world.log(&report).await);
    for slug in used {
        let link = world.link(slug).await;
        assert_eq!(link.slugs[0].slug, Slug::new(slug).unwrap());
    }
    assert_eq!(world.leads("\u{f6}").await.as_deref(), Some("https://example.com/o"));
});

import_test!(a1_8_a1_17_a5_72_what_belongs_to_a_link_comes_with_it, world, {
    let link = Record {
        title: Some("A title \u{1} \"quoted\" ü".into()),
        tags: vec!["spring".into(), "Sale".into(), "spring".into()],
        folder: Some("Campaigns".into()),
        archived: true,
        clicks: Some(42),
        expires: Some(1_700_000_000_000_000),
        ..record("a", "old.example.com/a", "https://example.com/a")
    };
    world.account.set(&[link, record("b", "old.example.com/b", "https://example.com/b")]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([2, 0, 0, 0, 0, 0, 0], Some("clean")));

    let link = world.link("a").await;
    let content = &link.content;
    assert_eq!(content.title.as_ref().unwrap().as_str(), "A title \u{1} \"quoted\" ü");
    let mut tags: Vec<&str> = content.tags.iter().map(links::Name::as_str).collect();
    tags.sort_unstable();
    assert_eq!(tags, ["Sale", "imported:parcels", "spring"]);
    assert_eq!(content.folder.as_ref().unwrap().as_str(), "Campaigns");
    assert_eq!((content.archived, content.imported_clicks), (true, Some(42)));
    assert_eq!(content.created_at, Timestamp::from_micros(1_600_000_000_000_000));
    // Expired long ago: it comes over expired, and its slug stays taken.
    assert_eq!(content.expires_at, Some(Timestamp::from_micros(1_700_000_000_000_000)));
    let mut reader = world.database.read().await.unwrap();
    let filter = links::Filter { state: Some(State::Expired), ..links::Filter::default() };
    let now = Timestamp::here();
    let expired = links::list_links(reader.conn(), world.workspace, &filter, None, 10, now).await.unwrap();
    drop(reader);
    assert_eq!(expired.links.iter().map(|link| link.id).collect::<Vec<_>>(), [link.id]);
    let provenance = link.provenance.unwrap();
    assert_eq!((provenance.vendor.as_str(), provenance.source_id.as_str()), ("parcels", "a"));

    let tags: Vec<String> =
        world.link("b").await.content.tags.iter().map(|tag| tag.as_str().to_owned()).collect();
    assert_eq!(tags, ["imported:parcels"]);
    assert!(world.verify(&report).await.holds);
});

import_test!(c36_c42_records_that_cannot_be_read_fail_alone_and_are_kept_whole, world, {
    let good = |id: &str| {
        serde_json::to_string(&record(id, &format!("old.example.com/{id}"), "https://example.com/")).unwrap()
    };
    let nowhere =
        serde_json::to_string(&Record { at: Vec::new(), ..record("none", "x/y", "https://e.example/") });
    world.account.set_raw(vec![
        good("a"),
        "{\"id\": \"cut".into(),
        String::from("null"),
        serde_json::to_string(&record("", "old.example.com/no-id", "https://example.com/")).unwrap(),
        serde_json::to_string(&record("", "old.example.com/no-id-either", "https://example.com/")).unwrap(),
        nowhere.unwrap(),
        good("b"),
    ]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([2, 0, 0, 0, 0, 0, 5], Some("partial")));
    let codes: Vec<String> = world.reasons(&report).await.into_iter().map(|told| told.2).collect();
    assert_eq!(
        codes,
        ["invalid_json", "invalid_json", "invalid_source_id", "invalid_source_id", "no_address"]
    );
    assert_eq!(world.quarantined(&report).await[0].raw, b"{\"id\": \"cut");
});

import_test!(what_the_vendor_deleted_is_left_out_and_listed, world, {
    world.account.set(&between(vec![Record {
        deleted: true,
        ..record("gone", "old.example.com/gone", "https://example.com/")
    }]));
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([2, 0, 0, 0, 1, 0, 0], Some("clean")));
    assert_eq!(world.reasons(&report).await, [told("gone", "filtered", "deleted_at_source")]);
});

import_test!(b10_what_a_link_leaves_behind_is_told_for_each_link, world, {
    let long = "t".repeat(2_000);
    world.account.set(&[
        Record { qr_code: true, ..record("qr", "old.example.com/qr", "https://example.com/") },
        Record {
            tags: vec!["short".into(), long.clone()],
            ios: Some("javascript:alert(1)".into()),
            ..record("refused", "old.example.com/refused", "https://example.com/")
        },
        record("whole", "old.example.com/whole", "https://example.com/"),
    ]);
    let report = world.import().await;
    assert_eq!((report.outcome, counters(&report)), (Some("clean"), [3, 0, 0, 0, 0, 0, 0]));
    assert_eq!(world.log(&report).await.len(), 0);
    let log = world.remarks(&report).await;
    let codes: Vec<_> = log.iter().map(|entry| (entry.outcome.as_str(), entry.reason.as_str())).collect();
    assert_eq!(codes, [("imported", "left_behind"), ("imported", "left_behind")]);
    assert_eq!(log[0].detail, "did not come over: qr_codes");
    assert!(
        log[1].detail.contains("tag 'tttt") && log[1].detail.contains("ios_url 'javascript:alert(1)'"),
        "{}",
        log[1].detail
    );
    assert!(world.link("refused").await.content.ios_url.is_none());
    // A second import has nothing to tell.
    let again = world.import().await;
    assert_eq!((counters(&again), world.remarks(&again).await.len()), ([0, 0, 3, 0, 0, 0, 0], 0));
});

import_test!(links_that_left_something_behind_leave_room_in_the_log_for_those_that_failed, world, {
    let mut records: Vec<Record> = (0..1_200)
        .map(|number| Record {
            qr_code: true,
            ..record(&format!("q{number}"), &format!("old.example.com/q{number}"), "https://example.com/")
        })
        .collect();
    records.push(record("bad", "old.example.com/bad", ""));
    world.account.set(&records);
    let report = world.import().await;
    assert_eq!((report.imported, report.failed), (1_200, 1));
    assert_eq!(world.remarks(&report).await.len(), 500);
    assert_eq!(world.reasons(&report).await, [told("bad", "failed", "missing_destination")]);
});

import_test!(a_link_that_lost_several_addresses_names_the_reason_of_each, world, {
    let mut several = record("several", "old.example.com/fine", "https://example.com/1");
    several.at.extend(["old.example.com/robots.txt", "old.example.com/a?b", "par.cel/x"].map(String::from));
    let mut many = record("many", "par.cel/0", "https://example.com/2");
    many.at.extend((1..15).map(|n| format!("par.cel/{n}")));
    world.account.set(&[several, many]);
    let report = world.import().await;
    assert_eq!((report.imported, report.failed, report.slugs), (0, 2, 1));
    let log = world.log(&report).await;
    assert_eq!(log[0].reason, "vendor_domain", "the code is that of the worst, the last of equals");
    for told in
        ["par.cel/x stands on", "old.example.com/robots.txt: ", "(reserved_slug)", "'a?b'", "(invalid_slug)"]
    {
        assert!(log[0].detail.contains(told), "{told}: {}", log[0].detail);
    }
    assert_eq!(log[1].detail.matches("stands on a domain of the vendor").count(), 10);
    assert!(log[1].detail.ends_with("; and 5 more"), "{}", log[1].detail);
    assert!(world.verify(&report).await.holds);
});

db::on_both!(
    a4_57_the_longest_destination_is_a_setting,
    [&engine::ROOM, &links::ROOM, &crossdock_imports::ROOM],
    |database: db::Database| async move {
        let of = |length: usize| format!("https://example.com/{}", "x".repeat(length - 20));
        let world = World::taking(database, crate::world::limits(), 40_000).await;
        world.account.set(&[
            record("fits", "old.example.com/fits", &of(40_000)),
            record("not", "old.example.com/not", &of(40_001)),
        ]);
        let report = world.import().await;
        assert_eq!((report.imported, report.failed), (1, 1));
        assert_eq!(world.reasons(&report).await, [told("not", "failed", "destination_too_long")]);
        assert_eq!(world.leads("fits").await, Some(of(40_000)));
        assert!(world.verify(&report).await.holds);
        world.stop().await;
    }
);
