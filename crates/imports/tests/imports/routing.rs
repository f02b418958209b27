//! Which domain an address goes to.

use std::collections::BTreeMap;

use crossdock_imports as imports;
use imports::{Conflict, Filter};
use links::{CaseMode, Host};

use crate::world::{Record, VENDOR_HOST, counters, import_test, record, token, told};

fn mapped(rules: &[(&str, &str)]) -> Filter {
    let map_domain: BTreeMap<String, String> =
        rules.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    Filter { map_domain, ..Filter::default() }
}

import_test!(a1_5_a1_7_the_same_slug_on_two_hosts_coexists_on_two_mapped_domains, world, {
    world.add_domain("x.example.net", CaseMode::Sensitive).await;
    world.add_domain("y.example.net", CaseMode::Sensitive).await;
    world.account.set(&[
        record("one", "a.example.com/s", "https://example.com/1"),
        record("two", "b.example.com/s", "https://example.com/2"),
    ]);
    let filter = mapped(&[("a.example.com", "x.example.net"), ("b.example.com", "y.example.net")]);
    let report = world.import_filtered(filter.clone()).await;
    assert_eq!((counters(&report), report.slugs), ([2, 0, 0, 0, 0, 0, 0], 2));
    assert_eq!(world.slugs().await, ["x.example.net/s", "y.example.net/s"]);
    assert_eq!(report.filter, filter, "the rules are kept with the job");
    assert!(world.verify(&report).await.holds);
    assert_eq!(counters(&world.import_filtered(filter).await), [0, 0, 2, 0, 0, 0, 0]);
});

import_test!(a1_6_every_slug_goes_to_the_target_domain_unless_it_is_mapped, world, {
    world.account.set(&[
        record("one", "old.example.com/a", "https://example.com/1"),
        record("two", "older.example.com/b", "https://example.com/2"),
    ]);
    let report = world.import().await;
    assert_eq!((report.imported, report.domain.as_str()), (2, "go.example.com"));
    assert_eq!(world.slugs().await, ["go.example.com/a", "go.example.com/b"]);
    assert_eq!(world.target_rows().await[4], 1, "no domain was made by itself");
});

import_test!(b6_what_only_domain_leaves_out_is_filtered_and_listed, world, {
    let mut both = record("both", "old.example.com/b1", "https://example.com/2");
    both.at.push("other.example.com/b2".into());
    world.account.set(&[
        record("in", "old.example.com/a", "https://example.com/1"),
        both,
        record("out", "other.example.com/c", "https://example.com/3"),
    ]);
    let filter = Filter { only_domain: vec!["old.example.com".into()], ..Filter::default() };
    let report = world.import_filtered(filter.clone()).await;
    assert_eq!((counters(&report), report.outcome), ([1, 0, 0, 0, 2, 0, 0], Some("clean")));
    assert_eq!(
        world.reasons(&report).await,
        [told("both", "filtered", "other_domain"), told("out", "filtered", "other_domain")]
    );
    assert!(world.log(&report).await[1].detail.contains("other.example.com/c"));
    assert_eq!(world.slugs().await, ["go.example.com/a", "go.example.com/b1"]);
    assert!(world.verify(&report).await.holds);
    // Again: nothing new, and the record that is here in part is not suffixed.
    let again = world.import_filtered(filter).await;
    assert_eq!(counters(&again), [0, 0, 1, 0, 2, 0, 0]);
    assert_eq!(world.slugs().await.len(), 2);
});

import_test!(a_host_of_the_vendor_fails_with_advice_until_it_is_mapped, world, {
    world.account.set(&[
        record("own", "old.example.com/a", "https://example.com/1"),
        record("theirs", &format!("{VENDOR_HOST}/b"), "https://example.com/2"),
    ]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([1, 0, 0, 0, 0, 0, 1], Some("partial")));
    assert_eq!(world.reasons(&report).await, [told("theirs", "failed", "vendor_domain")]);
    let detail = world.log(&report).await.remove(0).detail;
    assert!(detail.contains("par.cel/b") && detail.contains("--map-domain par.cel=YOURHOST"), "{detail}");

    let report = world.import_filtered(mapped(&[(VENDOR_HOST, "go.example.com")])).await;
    assert_eq!(counters(&report), [1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(world.slugs().await, ["go.example.com/a", "go.example.com/b"]);
});

import_test!(a1_1_a1_2_one_link_with_its_hash_and_all_its_back_halves, world, {
    let with = |id: &str, custom: &[&str]| {
        let mut link = record(id, &format!("old.example.com/hash-{id}"), "https://example.com/");
        link.at.extend(custom.iter().map(|slug| format!("old.example.com/{slug}")));
        link
    };
    world.account.set(&[
        with("none", &[]),
        with("one", &["Sale"]),
        with("three", &["x1", "x2", "x3"]),
        // The same address twice is one address.
        with("same", &["hash-same", "s"]),
    ]);
    let report = world.import().await;
    assert_eq!((report.imported, report.slugs, report.source_links), (4, 9, 4));
    let ids = [world.link("hash-three").await.id, world.link("x1").await.id, world.link("x3").await.id];
    assert_eq!(ids[0], ids[1]);
    assert_eq!(ids[0], ids[2]);
    assert_eq!(world.leads("Sale").await.as_deref(), Some("https://example.com/"));
});

import_test!(a_record_with_several_slugs_has_its_worst_slugs_outcome, world, {
    world.make("taken", "https://example.com/mine").await;
    let mut link = record("a", "old.example.com/3AbCdEf", "https://example.com/a");
    link.at.push("old.example.com/Sale".into());
    link.at.push("old.example.com/taken".into());
    link.at.push("old.example.com/abc?env=prod".into());
    world.account.set(&[link]);
    let report = world.import_by(Conflict::Skip).await;
    assert_eq!((counters(&report), report.slugs), ([0, 0, 0, 0, 0, 0, 1], 2));
    assert_eq!(world.reasons(&report).await, [told("a", "failed", "invalid_slug")]);
    assert!(world.log(&report).await[0].detail.contains("old.example.com/abc?env=prod"));
    assert_eq!(
        world.slugs().await,
        ["go.example.com/3AbCdEf", "go.example.com/Sale", "go.example.com/taken"]
    );
    assert!(world.verify(&report).await.holds);
});

import_test!(an_unknown_domain_is_refused_before_anything_is_made, world, {
    let nowhere = Some(Host::new("nowhere.example.com").unwrap());
    for new in [
        imports::NewImport { domain: nowhere, ..world.plain() },
        imports::NewImport { filter: mapped(&[("a.example.com", "nowhere.example.com")]), ..world.plain() },
    ] {
        let error = world.imports.start(&new, token()).await.unwrap_err();
        assert!(error.to_string().contains("nowhere.example.com"), "{error}");
    }
    let error =
        world.imports.start(&imports::NewImport { vendor: "nobody".into(), ..world.plain() }, token()).await;
    assert!(matches!(error, Err(imports::Error::UnknownVendor(..))));
    assert_eq!(world.count("SELECT COUNT(*) FROM crossdock.jobs").await, 0);
});

import_test!(one_import_at_a_time_runs_into_a_domain_and_the_next_queues, world, {
    let records: Vec<_> = (0..40)
        .map(|n| record(&format!("r{n}"), &format!("old.example.com/s{n}"), "https://example.com/"))
        .collect();
    world.account.set(&records);
    world.account.page_size(10);
    world.account.close_after(1);
    let first = world.imports.start(&world.plain(), token()).await.unwrap();
    let second = world.imports.start(&world.plain(), token()).await.unwrap();
    world.account.open();
    // If both ran, each would find slugs of the other's.
    let (first, second) = (world.rest(first).await, world.rest(second).await);
    assert_eq!(counters(&first), [40, 0, 0, 0, 0, 0, 0]);
    assert_eq!(counters(&second), [0, 0, 40, 0, 0, 0, 0]);
    assert!(second.started_at >= first.finished_at, "{:?} {:?}", second.started_at, first.finished_at);
});

/// A dry run over hosts of every sort, in chunks of one record.
fn of_all_hosts() -> Vec<Record> {
    let mut both = record("both", "old.example.com/b1", "https://example.com/2");
    both.at.push(format!("{VENDOR_HOST}/b2"));
    let twice = record("twice", "old.example.com/t", "https://example.com/3");
    vec![
        record("one", "old.example.com/a", "https://example.com/1"),
        both,
        twice.clone(),
        Record { noise: 1, ..twice },
        record("mapped", "a.example.com/m", "https://example.com/4"),
        record("fails", "old.example.com/f", ""),
        Record { deleted: true, ..record("bin", "bin.example.com/x", "https://example.com/5") },
    ]
}

import_test!(a1_6_a_dry_run_lists_the_hosts_it_met_and_where_they_go, crate::world::one_by_one(), world, {
    world.add_domain("x.example.net", CaseMode::Sensitive).await;
    world.account.set(&of_all_hosts());
    let filter = mapped(&[("a.example.com", "x.example.net")]);
    let new = imports::NewImport { filter, dry_run: true, ..world.plain() };
    let lines = |report: &imports::ImportReport| report.hosts.as_ref().unwrap().lines(100);
    let report = world.import_as(&new).await;
    assert_eq!(
        lines(&report),
        [
            "old.example.com 4 -> go.example.com".to_owned(),
            "a.example.com 1 -> x.example.net".into(),
            format!(
                "{VENDOR_HOST} 1 -> (vendor's own host) left out; --map-domain {VENDOR_HOST}=YOURHOST says where they go"
            ),
        ],
        "each record once, what is in the bin not at all"
    );

    let mut mapped = new.clone();
    mapped.filter.map_domain.insert(VENDOR_HOST.into(), "go.example.com".into());
    mapped.filter.only_domain = vec![VENDOR_HOST.into(), "a.example.com".into()];
    assert_eq!(
        lines(&world.import_as(&mapped).await),
        [
            // What is left out is not compared: the record that comes twice counts twice.
            "old.example.com 5 -> left out; this import is limited to other hosts".to_owned(),
            "a.example.com 1 -> x.example.net".into(),
            format!("{VENDOR_HOST} 1 -> (vendor's own host) go.example.com"),
        ]
    );
    let listed = world.imports.list(world.workspace, None, 10).await.unwrap();
    assert!(listed.iter().all(|report| report.hosts.is_none()), "lists stay short");
    assert_eq!(world.import().await.hosts, None, "what writes as it goes does not check");
});

import_test!(
    hosts_are_those_of_the_whole_check_after_a_restart_of_it_too,
    crate::world::one_by_one(),
    world,
    {
        world.account.set(&of_all_hosts());
        let new = imports::NewImport { conflict: Conflict::Fail, ..world.plain() };
        world.make("a", "https://example.com/taken").await;
        let report = world.import_as(&new).await;
        assert_eq!(report.status, engine::Status::Failed);
        let before = report.hosts.unwrap();
        assert_eq!(before.met[0].slugs, 4);
        world.imports.resume(None, report.id, None).await.unwrap();
        let again = world.rest(report.id).await;
        assert_eq!((again.status, again.hosts), (engine::Status::Failed, Some(before)), "not counted twice");
    }
);
