//! Pausing, resuming and cancelling.

use crossdock_imports as imports;
use engine::Status;

use crate::world::{Record, counters, import_test, record, token};

fn account() -> Vec<Record> {
    (0..50)
        .map(|n| record(&format!("r{n}"), &format!("old.example.com/s{n}"), "https://example.com/"))
        .collect()
}

import_test!(a_paused_import_goes_on_where_it_stopped, world, {
    world.account.set(&account());
    world.account.page_size(10);
    world.account.close_after(2);
    let id = world.imports.start(&world.plain(), token()).await.unwrap();
    for _ in 0..3 {
        world.account.asked().await;
    }
    let paused = world.imports.pause(Some(world.workspace), id).await.unwrap();
    assert_eq!(paused.status, Status::Paused);
    assert_eq!(world.imports.unfinished(&world.plain()).await.unwrap(), Some(id));
    let again = world.imports.pause(Some(world.workspace), id).await.unwrap();
    assert_eq!(again.status, Status::Paused, "pausing twice is pausing");

    world.account.open();
    world.imports.resume(Some(world.workspace), id, Some(token())).await.unwrap();
    let report = world.rest(id).await;
    assert_eq!((report.status, counters(&report)), (Status::Completed, [50, 0, 0, 0, 0, 0, 0]));
    assert!(world.verify(&report).await.holds);
    assert_eq!(world.imports.unfinished(&world.plain()).await.unwrap(), None);
    let error = world.imports.resume(Some(world.workspace), id, None).await.unwrap_err();
    assert!(matches!(error, imports::Error::State { from: Status::Completed, wanted: "resumed" }), "{error}");
});

import_test!(a_cancelled_import_keeps_what_it_wrote_and_never_goes_on, world, {
    world.account.set(&account());
    world.account.page_size(10);
    world.account.close_after(0);
    let id = world.imports.start(&world.plain(), token()).await.unwrap();
    assert_eq!(world.imports.cancel(Some(world.workspace), id).await.unwrap().status, Status::Cancelled);
    world.account.open();
    assert_eq!(world.rest(id).await.status, Status::Cancelled);
    for wanted in [
        world.imports.resume(Some(world.workspace), id, Some(token())).await,
        world.imports.pause(Some(world.workspace), id).await,
    ] {
        assert!(matches!(wanted, Err(imports::Error::State { from: Status::Cancelled, .. })));
    }
    // The same command makes a new import.
    assert_eq!(counters(&world.import().await)[0], 50);
});

import_test!(a_finished_import_leaves_no_token_behind, world, {
    world.account.set(&account());
    let report = world.import().await;
    // It is forgotten right after the import is seen to be completed.
    world.stop().await;
    assert!(world.vault.get(report.id).is_none());
});

import_test!(f83_a_token_that_is_pasted_while_the_import_runs_is_used_at_once, world, {
    world.account.set(
        &(0..6)
            .map(|n| record(&format!("r{n}"), &format!("old.example.com/r{n}"), "https://example.com/"))
            .collect::<Vec<_>>(),
    );
    world.account.page_size(2);
    world.account.close_after(1);
    let id = world.imports.start(&world.plain(), token()).await.unwrap();
    // The second page is asked for with the old token and held.
    world.account.asked().await;
    world.account.asked().await;
    world.account.accept("another token");
    let report = world
        .imports
        .resume(Some(world.workspace), id, Some(imports::Token::new("another token")))
        .await
        .unwrap();
    assert_eq!(report.status, Status::Running);
    world.account.open();
    let report = world.rest(id).await;
    assert_eq!((report.status, report.imported), (Status::Completed, 6));
});
