//! A link that came over before is recognised.

use crossdock_imports as imports;
use links::{CaseMode, Host};

use crate::world::{Record, counters, import_test, record, told};

fn account() -> Vec<Record> {
    vec![
        record("a", "old.example.com/a", "https://example.com/a"),
        record("b", "old.example.com/sale", "https://example.com/b"),
        record("c", "old.example.com/sale", "https://example.com/c"),
        Record { created: None, ..record("undated", "old.example.com/u", "https://example.com/u") },
    ]
}

import_test!(a1_15_a_second_import_changes_nothing_and_suffixes_nothing, world, {
    world.account.set(&account());
    let first = world.import().await;
    assert_eq!(counters(&first), [4, 0, 0, 0, 0, 0, 0]);
    let slugs = world.slugs().await;
    let link = world.link("sale-2").await;

    for _ in 0..2 {
        let again = world.import().await;
        assert_eq!((counters(&again), again.outcome), ([0, 0, 4, 0, 0, 0, 0], Some("clean")));
        assert_eq!(world.slugs().await, slugs);
        assert_eq!(world.link("sale-2").await, link, "nothing was written, not even a version");
        assert!(world.verify(&again).await.holds);
    }
    assert!(world.verify(&first).await.holds);
});

import_test!(c33_identity_is_the_source_id_alone_not_its_place_or_its_bytes, world, {
    world.account.set(&account());
    world.import().await;
    // A new link on top moves every other one, and the vendor writes its JSON in another way.
    let mut moved = vec![record("new", "old.example.com/new", "https://example.com/new")];
    moved.extend(account().into_iter().map(|record| Record { noise: 7, ..record }));
    world.account.set(&moved);
    world.account.page_size(2);
    assert_eq!(counters(&world.import().await), [1, 0, 4, 0, 0, 0, 0]);
});

import_test!(what_changed_at_the_source_is_updated_in_place, world, {
    world.account.set(&account());
    world.import().await;
    let before = world.link("sale-2").await;
    let mut changed = account();
    changed[2].to = "https://example.com/c-now".into();
    changed[2].title = Some("A title".into());
    changed[2].at.push("old.example.com/extra".into());
    world.account.set(&changed);

    let report = world.import().await;
    assert_eq!(counters(&report), [0, 1, 3, 0, 0, 0, 0]);
    let after = world.link("sale-2").await;
    assert_eq!((after.id, after.content.destination.as_str()), (before.id, "https://example.com/c-now"));
    assert_eq!(world.link("extra").await.id, before.id);
    assert_eq!(world.leads("sale-3").await, None, "a slug that was renamed before is the link's already");
    assert!(world.verify(&report).await.holds);
    assert_eq!(counters(&world.import().await), [0, 0, 4, 0, 0, 0, 0]);
});

import_test!(what_was_edited_here_stays_and_is_listed_when_the_source_changes, world, {
    world.account.set(&account());
    world.import().await;
    let link = world.link("a").await;
    world.edit(link.id, "https://example.com/better").await;
    // Nothing changed at the source: nothing to say.
    let quiet = world.import().await;
    assert_eq!((counters(&quiet), world.log(&quiet).await.len()), ([0, 0, 4, 0, 0, 0, 0], 0));

    let mut changed = account();
    changed[0].to = "https://example.com/a-now".into();
    world.account.set(&changed);
    let report = world.import().await;
    assert_eq!(counters(&report), [0, 0, 3, 1, 0, 0, 0]);
    assert_eq!(world.reasons(&report).await, [told("a", "skipped", "edited_here")]);
    assert_eq!(world.leads("a").await.as_deref(), Some("https://example.com/better"));
    assert!(world.verify(&report).await.holds);
});

import_test!(what_was_deleted_here_stays_deleted_and_is_listed, world, {
    world.account.set(&account());
    world.import().await;
    world.delete(world.link("a").await.id).await;
    let mut changed = account();
    for records in [account(), {
        changed[0].to = "https://example.com/a-now".into();
        changed
    }] {
        world.account.set(&records);
        let report = world.import().await;
        assert_eq!(counters(&report), [0, 0, 3, 0, 1, 0, 0]);
        assert_eq!(world.reasons(&report).await, [told("a", "filtered", "deleted_here")]);
        assert_eq!(world.leads("a").await, None);
        assert!(world.verify(&report).await.holds);
    }
});

import_test!(after_an_undo_everything_comes_again, world, {
    let mine = world.make("mine", "https://example.com/mine").await;
    world.account.set(&account());
    let first = world.import().await;
    world.delete(world.link("a").await.id).await;
    let edited = world.link("u").await;
    world.edit(edited.id, "https://example.com/edited").await;

    let undone = world.imports.undo(Some(world.workspace), first.id).await.unwrap();
    assert_eq!((undone.removed, undone.deleted, undone.edited), (2, 1, 1));
    assert_eq!(world.slugs().await, ["go.example.com/mine", "go.example.com/u"]);
    assert_eq!(world.link("mine").await, mine);
    // Once more does no harm.
    let again = world.imports.undo(Some(world.workspace), first.id).await.unwrap();
    assert_eq!((again.removed, again.edited), (0, 1));

    let report = world.import().await;
    assert_eq!(counters(&report), [3, 0, 1, 0, 0, 0, 0]);
    assert_eq!(world.leads("a").await.as_deref(), Some("https://example.com/a"));
    assert_eq!(world.leads("u").await.as_deref(), Some("https://example.com/edited"));
    assert!(world.verify(&report).await.holds);
});

import_test!(an_undo_puts_back_what_the_import_updated, world, {
    world.account.set(&account());
    let first = world.import().await;
    let before = world.link("a").await;
    let mut changed = account();
    changed[0].to = "https://example.com/a-now".into();
    changed[1].to = "https://example.com/b-now".into();
    world.account.set(&changed);
    let second = world.import().await;
    assert_eq!(counters(&second), [0, 2, 2, 0, 0, 0, 0]);
    let edited = world.link("sale").await;
    world.edit(edited.id, "https://example.com/edited").await;

    let undone = world.imports.undo(Some(world.workspace), second.id).await.unwrap();
    assert_eq!((undone.removed, undone.restored, undone.edited), (0, 1, 1));
    let back = world.link("a").await;
    assert_eq!((back.content, back.slugs), (before.content, before.slugs));
    assert_eq!(world.leads("sale").await.as_deref(), Some("https://example.com/edited"));
    // Once more does no harm, and the first import can be undone behind it.
    let again = world.imports.undo(Some(world.workspace), second.id).await.unwrap();
    assert_eq!((again.removed, again.restored, again.edited), (0, 0, 0));
    let undone = world.imports.undo(Some(world.workspace), first.id).await.unwrap();
    assert_eq!((undone.removed, undone.edited + undone.written_by_another_job), (3, 1));
});

import_test!(a1_15_after_the_undo_of_a_failed_import_everything_comes_again, world, {
    world.account.set(&account());
    world.account.page_size(2);
    world.account.refuse_from(2);
    let failed = world.import().await;
    assert_eq!((failed.status, failed.imported), (engine::Status::Failed, 2));

    let undone = world.imports.undo(Some(world.workspace), failed.id).await.unwrap();
    assert_eq!(undone.removed, 2);
    world.account.refuse_from(usize::MAX);
    // Going on would leave out what was taken back.
    let error = world.imports.resume(Some(world.workspace), failed.id, None).await.unwrap_err();
    assert!(matches!(error, imports::Error::State { wanted: "resumed", .. }), "{error}");
    assert_eq!(world.imports.unfinished(&world.plain()).await.unwrap(), None);
    let report = world.import().await;
    assert_eq!(counters(&report), [4, 0, 0, 0, 0, 0, 0]);
    assert!(world.verify(&report).await.holds);
});

import_test!(a_link_without_a_date_keeps_the_one_it_got_here, world, {
    world.account.set(&account());
    world.import().await;
    let before = world.link("u").await;
    let mut changed = account();
    changed[3].title = Some("A title".into());
    world.account.set(&changed);
    let report = world.import().await;
    assert_eq!(counters(&report), [0, 1, 3, 0, 0, 0, 0]);
    let after = world.link("u").await;
    assert_eq!(after.content.created_at, before.content.created_at);
    assert_eq!(after.content.title.unwrap().as_str(), "A title");
    assert!(world.verify(&report).await.holds);
});

import_test!(slugs_do_not_go_to_a_domain_of_the_vendor, world, {
    let theirs = world.add_domain(crate::world::VENDOR_HOST, CaseMode::Sensitive).await;
    let mapped = imports::Filter {
        map_domain: [("old.example.com".to_owned(), theirs.host.to_string())].into(),
        ..imports::Filter::default()
    };
    for new in [
        imports::NewImport { domain: Some(theirs.host.clone()), ..world.plain() },
        imports::NewImport { filter: mapped, ..world.plain() },
    ] {
        let error = world.imports.start(&new, crate::world::token()).await.unwrap_err();
        assert!(
            matches!(&error, imports::Error::VendorsDomain(host) if host == theirs.host.as_str()),
            "{error}"
        );
    }
});

import_test!(an_undo_leaves_what_a_later_import_wrote, world, {
    world.account.set(&account());
    let first = world.import().await;
    let mut changed = account();
    changed[0].to = "https://example.com/a-now".into();
    world.account.set(&changed);
    let second = world.import().await;
    assert_eq!(second.updated, 1);
    let undone = world.imports.undo(Some(world.workspace), first.id).await.unwrap();
    assert_eq!((undone.removed, undone.written_by_another_job), (3, 1));
    assert_eq!(world.leads("a").await.as_deref(), Some("https://example.com/a-now"));
});

import_test!(a_running_import_cannot_be_undone, world, {
    world.account.set(&account());
    world.account.close_after(0);
    let id = world.imports.start(&world.plain(), crate::world::token()).await.unwrap();
    let error = world.imports.undo(Some(world.workspace), id).await.unwrap_err();
    assert!(matches!(error, imports::Error::State { wanted: "undone", .. }), "{error}");
    world.account.open();
    world.rest(id).await;
});

import_test!(identity_is_kept_apart_for_each_target_domain, world, {
    let other = world.add_domain("links.example.org", CaseMode::Sensitive).await;
    world.account.set(&account());
    world.import().await;
    let there = imports::NewImport { domain: Some(other.host.clone()), ..world.plain() };
    assert_eq!(counters(&world.import_as(&there).await), [4, 0, 0, 0, 0, 0, 0]);
    assert_eq!(world.slugs().await.len(), 8);
    assert_eq!(counters(&world.import_as(&there).await), [0, 0, 4, 0, 0, 0, 0]);
});

import_test!(a4_62_two_slugs_with_one_destination_stay_two_links, world, {
    world.account.set(&[
        record("a", "old.example.com/a", "https://example.com/same"),
        record("b", "old.example.com/b", "https://example.com/same"),
        record("c", "old.example.com/c", "https://example.com/SaMe"),
    ]);
    assert_eq!(world.import().await.imported, 3);
    assert_ne!(world.link("a").await.id, world.link("b").await.id);
    assert_eq!(world.leads("c").await.as_deref(), Some("https://example.com/SaMe"));
});

import_test!(a_workspace_sees_its_own_imports_alone, world, {
    world.account.set(&account());
    let report = world.import().await;
    let mut tx = world.database.begin().await.unwrap();
    let name = links::Name::new("theirs").unwrap();
    let (theirs, _) = links::ensure_workspace(&mut tx, &name, crate::world::now()).await.unwrap();
    tx.commit().await.unwrap();
    for error in [
        world.imports.get(Some(theirs.id), report.id).await.map(|_| ()).unwrap_err(),
        world.imports.verify(Some(theirs.id), report.id).await.map(|_| ()).unwrap_err(),
        world.imports.undo(Some(theirs.id), report.id).await.map(|_| ()).unwrap_err(),
        world.imports.cancel(Some(theirs.id), report.id).await.map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, imports::Error::NotFound), "{error}");
    }
    assert_eq!(world.imports.list(theirs.id, None, 10).await.unwrap().len(), 0);
    assert_eq!(world.imports.list(world.workspace, None, 10).await.unwrap().len(), 1);
    // Nor can it write to a domain of another workspace.
    let new = imports::NewImport {
        workspace_id: theirs.id,
        domain: Some(Host::new(crate::world::HOST).unwrap()),
        ..world.plain()
    };
    let error = world.imports.start(&new, crate::world::token()).await.unwrap_err();
    assert!(matches!(error, imports::Error::UnknownDomain(_)), "{error}");
});

// we-promise/sure#3464: the provider gives its records new ids, and the same link comes again.
import_test!(c34_the_same_content_under_a_new_id_is_imported_and_listed_as_a_possible_rekey, world, {
    let titled = |id: &str, slug: &str| Record {
        title: Some("Sale".into()),
        ..record(id, &format!("old.example.com/{slug}"), "https://example.com/sale")
    };
    let untitled = |id: &str, slug: &str| Record { title: None, ..titled(id, slug) };
    let undated = |id: &str, slug: &str| Record { created: None, ..titled(id, slug) };
    world.account.set(&[titled("a", "a"), untitled("b", "b"), undated("c", "c"), titled("gone", "gone")]);
    let first = world.import().await;
    assert_eq!(world.remarks(&first).await.len(), 0, "nothing came before");
    world.delete(world.link("gone").await.id).await;

    let elsewhere = Record { to: "https://example.com/other".into(), ..titled("n5", "n5") };
    let later = Record { created: Some(1_600_000_001_000_000), ..titled("n6", "n6") };
    let renamed = Record { title: Some("sale".into()), ..titled("n7", "n7") };
    world.account.set(&[
        titled("a", "a"),
        titled("n1", "n1"),
        titled("n2", "n2"),
        untitled("n3", "n3"),
        undated("n4", "n4"),
        elsewhere,
        later,
        renamed,
    ]);
    let dry = world.dry_run().await;
    assert_eq!(world.remarks(&dry).await.len(), 0);
    let second = world.import().await;
    assert_eq!((second.imported, second.unchanged, second.outcome), (7, 1, Some("clean")), "never merged");
    let remarks = world.remarks(&second).await;
    let told: Vec<(&str, &str)> =
        remarks.iter().map(|entry| (entry.source_id.as_deref().unwrap(), entry.reason.as_str())).collect();
    assert_eq!(told, ["n1", "n2", "n3"].map(|id| (id, "possible_rekey")));
    assert!(remarks[0].is_possible_rekey() && remarks[0].detail.contains("n1 has the destination"));
    assert!(remarks[2].detail.contains("date of b, which"), "{}", remarks[2].detail);

    world.edit(world.link("a").await.id, "https://example.com/edited").await;
    assert_eq!(world.remarks(&second).await.len(), 3, "they are kept as they were found");
    assert_eq!(world.remarks(&world.import().await).await.len(), 0, "what is unchanged is no re-key");
});

import_test!(the_same_account_on_another_domain_is_no_rekey, world, {
    world.add_domain("x.example.net", CaseMode::Sensitive).await;
    let twins = ["a", "b"].map(|id| record(id, &format!("old.example.com/{id}"), "https://example.com/same"));
    world.account.set(&twins);
    world.import().await;
    let domain = Some(Host::new("x.example.net").unwrap());
    let there = world.import_as(&imports::NewImport { domain, ..world.plain() }).await;
    assert_eq!((there.imported, world.remarks(&there).await.len()), (2, 0));
});

import_test!(a_thousand_possible_rekeys_are_listed, world, {
    let twins = |prefix: &str| -> Vec<Record> {
        (0..1_100)
            .map(|n| {
                record(
                    &format!("{prefix}{n:04}"),
                    &format!("old.example.com/{prefix}{n}"),
                    "https://example.com/",
                )
            })
            .collect()
    };
    world.account.set(&twins("a"));
    world.import().await;
    world.account.set(&twins("b"));
    let second = world.import().await;
    let remarks = world.remarks(&second).await;
    assert_eq!((second.imported, remarks.len()), (1_100, 1_000));
    assert_eq!(remarks[0].source_id.as_deref(), Some("b0000"));
});
