//! The source gives a link twice.

use crate::world::{NAMELESS, Record, counters, import_test, one_by_one, record, told};

fn link(noise: u32, to: &str) -> Record {
    Record { noise, ..record("twice", "old.example.com/twice", to) }
}

fn other(id: &str) -> Record {
    record(id, &format!("old.example.com/{id}"), "https://example.com/other")
}

import_test!(c31_a1_20_the_same_link_twice_in_a_chunk_is_one_link, world, {
    // The second has the same bytes, the third the same content in other bytes.
    let to = "https://example.com/";
    world.account.set(&[link(0, to), link(0, to), other("between"), link(1, to)]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([2, 0, 0, 0, 0, 2, 0], Some("clean")));
    assert_eq!(world.slugs().await, ["go.example.com/between", "go.example.com/twice"]);
    assert!(world.verify(&report).await.holds);
});

import_test!(c32_the_same_link_in_two_chunks_is_one_link, one_by_one(), world, {
    let to = "https://example.com/";
    world.account.page_size(1);
    world.account.set(&[link(0, to), link(0, to), other("between"), link(1, to)]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([2, 0, 0, 0, 0, 2, 0], Some("clean")));
    assert_eq!(world.slugs().await.len(), 2);
    assert!(world.verify(&report).await.holds);
    // And in a second import too, where both are recognised.
    assert_eq!(counters(&world.import().await), [0, 0, 4, 0, 0, 0, 0]);
});

import_test!(c31_one_id_with_two_contents_in_a_chunk_fails_both, world, {
    world.account.set(&[
        link(0, "https://example.com/1"),
        other("between"),
        link(0, "https://example.com/2"),
    ]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([1, 0, 0, 0, 0, 0, 2], Some("partial")));
    assert_eq!(
        world.reasons(&report).await,
        [told("twice", "failed", "conflicting_duplicate"), told("twice", "failed", "conflicting_duplicate")]
    );
    assert_eq!(world.slugs().await, ["go.example.com/between"]);
});

import_test!(c32_one_id_with_two_contents_in_two_chunks_fails_the_later_one, one_by_one(), world, {
    world.account.page_size(1);
    world.account.set(&[
        link(0, "https://example.com/1"),
        other("between"),
        link(0, "https://example.com/2"),
    ]);
    let report = world.import().await;
    assert_eq!((counters(&report), report.outcome), ([2, 0, 0, 0, 0, 0, 1], Some("partial")));
    assert_eq!(world.reasons(&report).await, [told("twice", "failed", "conflicting_duplicate")]);
    assert_eq!(world.leads("twice").await.as_deref(), Some("https://example.com/1"));
    assert!(world.verify(&report).await.holds);
});

import_test!(what_is_checked_before_it_is_written_tells_a_duplicate_from_a_collision, one_by_one(), world, {
    // A page that overlaps with the one before it must not look like two links that want one slug.
    let to = "https://example.com/";
    world.account.page_size(1);
    world.account.set(&[
        link(0, to),
        link(0, to),
        other("between"),
        link(1, to),
        link(0, "https://example.com/2"),
    ]);
    let dry = world.dry_run().await;
    assert_eq!((counters(&dry), dry.slugs), ([2, 0, 0, 0, 0, 2, 1], 2));
    let report = world.import_by(crossdock_imports::Conflict::Fail).await;
    assert_eq!((counters(&report), report.slugs), (counters(&dry), dry.slugs), "{:?}", report.reason);
    assert_eq!(world.slugs().await, ["go.example.com/between", "go.example.com/twice"]);
});

import_test!(c36_two_records_without_an_id_are_two_records_even_with_the_same_bytes, world, {
    let nameless = || record(NAMELESS, "old.example.com/x", "https://example.com/x");
    world.account.set(&[nameless(), other("between"), nameless()]);
    let report = world.import().await;
    assert_eq!(counters(&report), [1, 0, 0, 0, 0, 0, 2]);
    assert_eq!(
        world.reasons(&report).await,
        [told("", "failed", "missing_id"), told("", "failed", "missing_id")]
    );
    assert_eq!(world.quarantined(&report).await.len(), 2);
    // A dry run foretells the same.
    assert_eq!(counters(&world.dry_run().await)[6], 2);
});

import_test!(c31_an_id_that_also_came_unreadable_fails_both, world, {
    let unreadable = Record { to: "unreadable".into(), ..link(0, "") };
    world.account.set(&[link(0, "https://example.com/1"), other("between"), unreadable]);
    let report = world.import().await;
    assert_eq!(counters(&report), [1, 0, 0, 0, 0, 0, 2]);
    assert_eq!(world.slugs().await, ["go.example.com/between"]);
});
