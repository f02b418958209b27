//! Verification finds what was spoiled behind the product's back, and does not cry wolf.

use imports::Verdict;

use crossdock_imports as imports;

use crate::world::{World, import_test, record};

async fn imported(world: &World) -> imports::ImportReport {
    let records: Vec<_> = (0..10)
        .map(|n| {
            record(&format!("r{n}"), &format!("old.example.com/s{n}"), &format!("https://example.com/{n}"))
        })
        .collect();
    world.account.set(&records);
    let report = world.import().await;
    let verification = world.verify(&report).await;
    assert!(
        verification.holds && verification.verified == 10 && verification.records == 10,
        "{verification:?}"
    );
    report
}

async fn finds(world: &World, report: &imports::ImportReport, verdict: Verdict, holds: bool) {
    let verification = world.verify(report).await;
    let found: Vec<(&str, Verdict)> =
        verification.findings.iter().map(|finding| (finding.source_id.as_str(), finding.verdict)).collect();
    assert_eq!(found, [("r5", verdict)]);
    assert_eq!((verification.holds, verification.verified), (holds, 9), "{verification:?}");
}

import_test!(g96_a_dropped_link_is_lost, world, {
    let report = imported(&world).await;
    let id = world.link("s5").await.id.get();
    assert_eq!(world.execute(&format!("DELETE FROM links WHERE id = {id}")).await, 1);
    finds(&world, &report, Verdict::Lost, false).await;
});

import_test!(g98_a_destination_changed_by_sql_is_altered, world, {
    let report = imported(&world).await;
    let id = world.link("s5").await.id.get();
    world
        .execute(&format!("UPDATE links SET destination = 'https://example.com/evil' WHERE id = {id}"))
        .await;
    finds(&world, &report, Verdict::Altered, false).await;
});

import_test!(a_slug_dropped_by_sql_is_altered, world, {
    let report = imported(&world).await;
    assert_eq!(world.execute("DELETE FROM slugs WHERE slug = 's5'").await, 1);
    finds(&world, &report, Verdict::Altered, false).await;
});

import_test!(a_tag_dropped_by_sql_is_altered, world, {
    let report = imported(&world).await;
    let id = world.link("s5").await.id.get();
    assert_eq!(world.execute(&format!("DELETE FROM link_tags WHERE link_id = {id}")).await, 1);
    finds(&world, &report, Verdict::Altered, false).await;
});

import_test!(what_people_edit_is_named_and_breaks_nothing, world, {
    let report = imported(&world).await;
    world.edit(world.link("s5").await.id, "https://example.com/better").await;
    finds(&world, &report, Verdict::Edited, true).await;
});

import_test!(what_people_delete_is_named_and_breaks_nothing, world, {
    let report = imported(&world).await;
    world.delete(world.link("s5").await.id).await;
    finds(&world, &report, Verdict::Deleted, true).await;
});

import_test!(g97_a_link_that_a_later_import_updated_is_no_damage, world, {
    let report = imported(&world).await;
    let mut changed: Vec<_> = (0..10)
        .map(|n| {
            record(&format!("r{n}"), &format!("old.example.com/s{n}"), &format!("https://example.com/{n}"))
        })
        .collect();
    changed[5].to = "https://example.com/now".into();
    world.account.set(&changed);
    let later = world.import().await;
    assert_eq!(later.updated, 1);
    finds(&world, &report, Verdict::Edited, true).await;
    let verification = world.verify(&later).await;
    assert!(verification.holds && verification.findings.is_empty(), "{verification:?}");
});
