//! What becomes of a slug that is taken.

use std::sync::mpsc;

use crossdock_imports as imports;
use engine::Status;
use imports::{Conflict, MAX_SUFFIX};
use links::CaseMode;

use crate::world::{Record, counters, import_test, one_by_one, record, told};

fn wants(id: &str, slug: &str) -> Record {
    record(id, &format!("old.example.com/{slug}"), &format!("https://example.com/of-{id}"))
}

/// Fifty-one links that want one slug, and what they get.
fn crowd() -> Vec<Record> {
    (1..=MAX_SUFFIX + 1).map(|number| wants(&format!("s{number:02}"), "sale")).collect()
}

import_test!(a1_11_suffix_takes_the_first_free_number_and_leaves_what_is_there, world, {
    let there = world.make("sale", "https://example.com/mine").await;
    world.make("sale-3", "https://example.com/mine-too").await;
    world.account.set(&[wants("a", "sale"), wants("b", "sale"), wants("c", "free")]);

    let report = world.import().await;
    assert_eq!((report.status, report.outcome), (Status::Completed, Some("clean")));
    assert_eq!((counters(&report), report.slugs), ([3, 0, 0, 0, 0, 0, 0], 3));
    assert_eq!(world.leads("sale-2").await.as_deref(), Some("https://example.com/of-a"));
    assert_eq!(world.leads("sale-4").await.as_deref(), Some("https://example.com/of-b"));
    assert_eq!(world.leads("free").await.as_deref(), Some("https://example.com/of-c"));
    assert_eq!(world.link("sale").await, there);

    let log = world.log(&report).await;
    let suffixed: Vec<&str> = log.iter().map(|entry| entry.reason.as_str()).collect();
    assert_eq!(suffixed, ["slug_suffixed", "slug_suffixed"]);
    assert_eq!(log[0].detail, "go.example.com/sale is taken; imported as go.example.com/sale-2");
    assert_eq!(log[0].source_slug.as_deref(), Some("old.example.com/sale"));
    assert!(world.verify(&report).await.holds);
});

import_test!(a1_11_suffix_walks_to_50_and_then_the_record_fails, world, {
    world.account.set(&crowd());
    world.account.page_size(20);
    let report = world.import().await;
    assert_eq!((report.status, report.outcome), (Status::Completed, Some("partial")));
    assert_eq!(counters(&report), [50, 0, 0, 0, 0, 0, 1]);
    assert_eq!(world.leads("sale").await.as_deref(), Some("https://example.com/of-s01"));
    for number in [2, 19, 20, 21, 50] {
        let expected = format!("https://example.com/of-s{number:02}");
        assert_eq!(world.leads(&format!("sale-{number}")).await, Some(expected), "sale-{number}");
    }
    assert_eq!(world.leads("sale-51").await, None);
    let failed: Vec<_> = world.reasons(&report).await.into_iter().filter(|told| told.1 == "failed").collect();
    assert_eq!(failed, [told("s51", "failed", "no_free_suffix")]);
    assert_eq!(world.quarantined(&report).await.len(), 1);
});

import_test!(
    the_same_records_in_the_same_order_get_the_same_slugs_however_they_are_cut,
    one_by_one(),
    world,
    {
        world.account.set(&crowd());
        world.account.page_size(7);
        let report = world.import().await;
        assert_eq!(counters(&report), [50, 0, 0, 0, 0, 0, 1]);
        for number in [2, 7, 8, 50] {
            let expected = format!("https://example.com/of-s{number:02}");
            assert_eq!(world.leads(&format!("sale-{number}")).await, Some(expected), "sale-{number}");
        }
    }
);

import_test!(a_suffix_past_the_length_limit_fails_that_record_alone, world, {
    // `-2` makes 255 characters of 253; `-10` makes 256.
    let longest = "x".repeat(255);
    let fits = "y".repeat(253);
    let mut records = vec![wants("full", &longest), wants("over", &longest)];
    records.extend((1..=10).map(|number| wants(&format!("n{number:02}"), &fits)));
    world.account.set(&records);
    let report = world.import().await;
    assert_eq!(counters(&report), [10, 0, 0, 0, 0, 0, 2]);
    let failed: Vec<_> = world.reasons(&report).await.into_iter().filter(|told| told.1 == "failed").collect();
    assert_eq!(failed, [told("over", "failed", "suffix_too_long"), told("n10", "failed", "suffix_too_long")]);
    assert_eq!(world.leads(&format!("{fits}-9")).await.as_deref(), Some("https://example.com/of-n09"));
    let log = world.log(&report).await;
    let over = log.iter().find(|entry| entry.source_id.as_deref() == Some("over")).unwrap();
    assert!(over.detail.contains("-2") && over.detail.contains("255"), "{}", over.detail);
});

import_test!(a1_11_skip_leaves_the_link_alone_and_lists_the_source, world, {
    let there = world.make("sale", "https://example.com/mine").await;
    world.account.set(&[wants("a", "sale"), wants("b", "new"), wants("c", "new")]);
    let report = world.import_by(Conflict::Skip).await;
    assert_eq!((report.status, report.outcome), (Status::Completed, Some("clean")));
    assert_eq!(counters(&report), [1, 0, 0, 2, 0, 0, 0]);
    assert_eq!(
        world.reasons(&report).await,
        [told("a", "skipped", "slug_taken"), told("c", "skipped", "slug_taken")]
    );
    assert_eq!(world.link("sale").await, there);
    assert_eq!(world.leads("new").await.as_deref(), Some("https://example.com/of-b"));
    assert_eq!(world.slugs().await, ["go.example.com/new", "go.example.com/sale"]);
});

import_test!(a1_11_a_skipped_slug_of_several_leaves_the_others, world, {
    world.make("taken", "https://example.com/mine").await;
    let mut both = wants("a", "3AbCdEf");
    both.at.push("old.example.com/taken".into());
    world.account.set(&[both]);
    let report = world.import_by(Conflict::Skip).await;
    // The record has its worst slug's outcome; what could come over has come.
    assert_eq!((counters(&report), report.slugs), ([0, 0, 0, 1, 0, 0, 0], 1));
    assert_eq!(world.leads("3AbCdEf").await.as_deref(), Some("https://example.com/of-a"));
    assert_eq!(world.leads("taken").await.as_deref(), Some("https://example.com/mine"));
    assert!(world.verify(&report).await.holds);
});

import_test!(fail_checks_everything_first_and_writes_nothing, world, {
    let there = world.make("s150", "https://example.com/mine").await;
    let records: Vec<Record> =
        (0..200).map(|number| wants(&format!("r{number}"), &format!("s{number}"))).collect();
    world.account.set(&records);
    world.account.page_size(50);
    let before = world.target_rows().await;

    let report = world.import_by(Conflict::Fail).await;
    assert_eq!(report.status, Status::Failed);
    let reason = report.reason.clone().unwrap_or_default();
    assert!(reason.contains("nothing was written") && reason.contains("go.example.com/s150"), "{reason}");
    assert_eq!(world.target_rows().await, before);
    assert_eq!(world.link("s150").await, there);

    // What stood in the way is gone: the same job goes on.
    world.delete(there.id).await;
    let goes_on = world.imports.resume(Some(world.workspace), report.id, Some(crate::world::token())).await;
    goes_on.unwrap();
    let report = world.rest(report.id).await;
    assert_eq!((report.status, counters(&report)), (Status::Completed, [200, 0, 0, 0, 0, 0, 0]));
    assert!(world.verify(&report).await.holds);
});

import_test!(fail_finds_two_records_of_the_source_that_want_one_slug, one_by_one(), world, {
    world.account.set(&[wants("a", "one"), wants("b", "two"), wants("c", "one")]);
    world.account.page_size(1);
    let before = world.target_rows().await;
    let report = world.import_by(Conflict::Fail).await;
    assert_eq!(report.status, Status::Failed);
    let reason = report.reason.clone().unwrap_or_default();
    assert!(reason.contains("1 slugs are taken: go.example.com/one"), "{reason}");
    assert_eq!(world.target_rows().await, before);
});

import_test!(fail_without_a_collision_imports_everything, world, {
    world.make("other", "https://example.com/mine").await;
    let records: Vec<Record> =
        (0..20).map(|number| wants(&format!("r{number}"), &format!("s{number}"))).collect();
    world.account.set(&records);
    let report = world.import_by(Conflict::Fail).await;
    assert_eq!((report.status, counters(&report)), (Status::Completed, [20, 0, 0, 0, 0, 0, 0]));
    assert!(world.verify(&report).await.holds);
});

import_test!(under_fail_a_slug_taken_while_it_writes_undoes_the_job, one_by_one(), world, {
    let records: Vec<Record> =
        (0..6).map(|number| wants(&format!("r{number}"), &format!("s{number}"))).collect();
    world.account.set(&records);
    world.account.page_size(1);
    // After the first chunk's commit somebody makes the link that a later chunk wants.
    let (reached, wait) = mpsc::channel();
    let (made, go_on) = mpsc::channel::<()>();
    let mut first = true;
    world.after_commit(move |_| {
        if std::mem::take(&mut first) {
            reached.send(()).unwrap();
            tokio::task::block_in_place(|| go_on.recv().unwrap());
        }
    });
    let new = imports::NewImport { conflict: Conflict::Fail, ..world.plain() };
    let id = world.imports.start(&new, crate::world::token()).await.unwrap();
    tokio::task::spawn_blocking(move || wait.recv().unwrap()).await.unwrap();
    assert!(world.leads("s0").await.is_some(), "the first chunk is written");
    let theirs = world.make("s4", "https://example.com/mine").await;
    made.send(()).unwrap();

    let report = world.rest(id).await;
    assert_eq!(report.status, Status::Failed);
    let reason = report.reason.clone().unwrap_or_default();
    assert!(reason.contains("go.example.com/s4"), "{reason}");
    assert_eq!(world.slugs().await, ["go.example.com/s4"]);
    assert_eq!(world.link("s4").await, theirs);
    assert_eq!(world.target_rows().await, [1, 1, 0, 0, 1], "links, slugs, tags, origins, domains");
});

import_test!(under_fail_what_was_updated_before_a_collision_is_put_back, one_by_one(), world, {
    let before: Vec<Record> = (0..3)
        .map(|number| Record {
            tags: vec!["spring".into()],
            ..wants(&format!("r{number}"), &format!("s{number}"))
        })
        .collect();
    world.account.set(&before);
    world.account.page_size(1);
    let first = world.import().await;
    let (link, rows) = (world.link("s0").await, world.target_rows().await);

    let mut after = before.clone();
    after[0] = Record {
        to: "https://example.com/now".into(),
        title: Some("Now".into()),
        tags: vec!["autumn".into()],
        at: vec!["old.example.com/s0".into(), "old.example.com/more".into()],
        ..before[0].clone()
    };
    after.push(wants("r9", "s9"));
    world.account.set(&after);
    let (reached, wait) = mpsc::channel();
    let (made, go_on) = mpsc::channel::<()>();
    let mut first_chunk = true;
    world.after_commit(move |_| {
        if std::mem::take(&mut first_chunk) {
            reached.send(()).unwrap();
            tokio::task::block_in_place(|| go_on.recv().unwrap());
        }
    });
    let new = imports::NewImport { conflict: Conflict::Fail, ..world.plain() };
    let id = world.imports.start(&new, crate::world::token()).await.unwrap();
    tokio::task::spawn_blocking(move || wait.recv().unwrap()).await.unwrap();
    assert_eq!(world.leads("more").await.as_deref(), Some("https://example.com/now"), "it is updated");
    world.make("s9", "https://example.com/mine").await;
    made.send(()).unwrap();

    let report = world.rest(id).await;
    assert_eq!(report.status, Status::Failed);
    let back = world.link("s0").await;
    assert_eq!((back.id, &back.content, &back.slugs), (link.id, &link.content, &link.slugs));
    assert_eq!(world.leads("more").await, None);
    let now = world.target_rows().await;
    assert_eq!(
        (now[0], now[1], now[2], now[3]),
        (rows[0] + 1, rows[1] + 1, rows[2], rows[3]),
        "theirs alone"
    );
    assert!(world.verify(&first).await.holds);
    // It is not taken for edited: under another rule the same change comes over.
    let again = world.import().await;
    assert_eq!(counters(&again), [1, 1, 2, 0, 0, 0, 0]);
    assert_eq!(world.leads("s0").await.as_deref(), Some("https://example.com/now"));
    assert!(world.verify(&again).await.holds);
});

import_test!(a_thousand_conflicts_need_nobody, world, {
    let account = |of: &str| -> Vec<Record> {
        (0..1_000).map(|number| wants(&format!("{of}{number}"), &format!("s{number}"))).collect()
    };
    world.account.set(&account("first"));
    assert_eq!(world.import().await.imported, 1_000);

    world.account.set(&account("second"));
    let report = world.import_by(Conflict::Skip).await;
    assert_eq!(counters(&report), [0, 0, 0, 1_000, 0, 0, 0]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([1_000, 0, 0, 0, 0, 0, 0], Some("clean")));
    assert_eq!(world.leads("s999-2").await.as_deref(), Some("https://example.com/of-second999"));
    assert_eq!(world.leads("s999").await.as_deref(), Some("https://example.com/of-first999"));
    assert_eq!(world.log(&report).await.len(), 1_000);
});

import_test!(
    a3_36_b12_slugs_that_collide_on_a_case_insensitive_domain_are_listed_and_nothing_is_overwritten,
    world,
    {
        let folded = world.add_domain("links.example.org", CaseMode::Insensitive).await;
        world.account.set(&[
            wants("one", "aB"),
            wants("two", "Ab"),
            wants("three", "ÄÖ"),
            wants("four", "äö"),
        ]);
        let host = Some(folded.host.clone());

        let dry = imports::NewImport { domain: host.clone(), dry_run: true, ..world.plain() };
        let report = world.import_as(&dry).await;
        assert_eq!(counters(&report), [4, 0, 0, 0, 0, 0, 0]);
        let listed = world.log(&report).await;
        let details: Vec<&str> = listed.iter().map(|entry| entry.detail.as_str()).collect();
        assert_eq!(
            details,
            [
                "links.example.org/Ab is taken; imported as links.example.org/Ab-2",
                "links.example.org/äö is taken; imported as links.example.org/äö-2",
            ]
        );
        assert_eq!(world.slugs().await, [""; 0]);

        let skip = imports::NewImport { domain: host.clone(), conflict: Conflict::Skip, ..world.plain() };
        let report = world.import_as(&skip).await;
        assert_eq!(counters(&report), [2, 0, 0, 2, 0, 0, 0]);

        let report = world.import_as(&imports::NewImport { domain: host, ..world.plain() }).await;
        assert_eq!(counters(&report), [2, 0, 2, 0, 0, 0, 0]);
        let leads = async |slug: &str| {
            let link = world.at(&folded, slug).await.unwrap();
            link.content.destination.as_str().to_owned()
        };
        assert_eq!(leads("AB").await, "https://example.com/of-one");
        assert_eq!(leads("ab-2").await, "https://example.com/of-two");
        assert_eq!(leads("äÖ").await, "https://example.com/of-three");
    }
);

import_test!(a3_35_a_case_sensitive_domain_keeps_both, world, {
    world.account.set(&[wants("one", "aB"), wants("two", "Ab")]);
    let report = world.import_by(Conflict::Fail).await;
    assert_eq!((counters(&report), report.outcome), ([2, 0, 0, 0, 0, 0, 0], Some("clean")));
    assert_eq!(world.slugs().await, ["go.example.com/Ab", "go.example.com/aB"]);
});

import_test!(a_suffix_that_another_record_wants_sends_that_one_on, world, {
    // `a` gets sale-2, which `b` wants; `b`'s own first alternative is taken in the target.
    world.make("sale", "https://example.com/mine").await;
    world.make("sale-2-2", "https://example.com/mine-too").await;
    world.account.set(&[wants("a", "sale"), wants("b", "sale-2")]);
    let report = world.import().await;
    assert_eq!((report.status, counters(&report)), (Status::Completed, [2, 0, 0, 0, 0, 0, 0]));
    assert_eq!(world.leads("sale-2").await.as_deref(), Some("https://example.com/of-a"));
    assert_eq!(world.leads("sale-2-3").await.as_deref(), Some("https://example.com/of-b"));
});

import_test!(the_order_of_the_records_decides_who_keeps_a_slug_that_is_also_a_suffix, world, {
    world.make("sale", "https://example.com/mine").await;
    world.make("sale-3", "https://example.com/mine-too").await;
    world.account.set(&[wants("b", "sale-2"), wants("a", "sale")]);
    let report = world.import().await;
    assert_eq!(counters(&report), [2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(world.leads("sale-2").await.as_deref(), Some("https://example.com/of-b"));
    assert_eq!(world.leads("sale-4").await.as_deref(), Some("https://example.com/of-a"));
});

import_test!(a_link_is_not_renamed_to_a_slug_of_its_own_nor_to_where_it_leads, world, {
    world.make("sale", "https://example.com/mine").await;
    let own = Record {
        at: vec!["old.example.com/sale".into(), "old.example.com/sale-2".into()],
        ..wants("own", "sale")
    };
    world.account.set(&[own, record("loop", "old.example.com/sale", "https://go.example.com/sale-4")]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.slugs), ([2, 0, 0, 0, 0, 0, 0], 3));
    for slug in ["sale-2", "sale-3"] {
        assert_eq!(world.leads(slug).await.as_deref(), Some("https://example.com/of-own"), "{slug}");
    }
    assert_eq!(world.leads("sale-4").await, None, "the link would lead to itself");
    assert_eq!(world.leads("sale-5").await.as_deref(), Some("https://go.example.com/sale-4"));
});

import_test!(a_new_slug_that_is_taken_is_told_even_if_its_suffix_is_the_links_by_right, world, {
    world.make("sale", "https://example.com/mine").await;
    world.account.set(&[wants("a", "sale-2")]);
    world.import().await;
    let both = vec!["old.example.com/sale-2".into(), "old.example.com/sale".into()];
    world.account.set(&[Record { at: both, ..wants("a", "sale-2") }]);
    let report = world.import().await;
    assert_eq!(counters(&report), [0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(world.reasons(&report).await, [told("a", "updated", "slug_suffixed")]);
    assert_eq!(world.leads("sale-3").await.as_deref(), Some("https://example.com/of-a"));
    // Once renamed it stays renamed.
    assert_eq!(counters(&world.import().await), [0, 0, 1, 0, 0, 0, 0]);
});
