use crossdock_links as links;
use db::{Kind, on_both};
use links::{Change, Mark};

use crate::world::{World, now, slug};

async fn since(world: &World, mark: Mark) -> links::Changes {
    let mut reader = world.database.read().await.unwrap();
    links::changes_since(reader.conn(), mark).await.unwrap()
}

async fn mark(world: &World) -> Mark {
    let mut reader = world.database.read().await.unwrap();
    links::changes_mark(reader.conn()).await.unwrap()
}

on_both!(every_change_of_a_link_or_domain_is_announced, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let start = mark(&world).await;
    let link = world.create("Sale").await.unwrap();
    let change =
        Change { domain_id: Some(world.domain.id), key: Some("Sale".into()), link_id: Some(link.id) };
    let seen = since(&world, start).await;
    assert_eq!(seen.changes.last(), Some(&change));
    let workspace = world.workspace.id;
    for step in 0..4 {
        let before = mark(&world).await;
        let mut tx = world.tx().await;
        match step {
            0 => links::update_link(&mut tx, workspace, link.id, None, now(), |_| Ok(()))
                .await
                .map(drop)
                .unwrap(),
            1 => links::delete_link(&mut tx, workspace, link.id, None, now()).await.unwrap(),
            2 => links::restore_link(&mut tx, workspace, link.id, None, now()).await.map(drop).unwrap(),
            _ => links::update_domain(&mut tx, workspace, world.domain.id, None, |_| ())
                .await
                .map(drop)
                .unwrap(),
        }
        tx.commit().await.unwrap();
        let expected = if step < 3 {
            change.clone()
        } else {
            Change { domain_id: Some(world.domain.id), key: None, link_id: None }
        };
        assert_eq!(since(&world, before).await.changes.last(), Some(&expected), "step {step}");
    }
    let mut tx = world.tx().await;
    assert_eq!(links::purge_changes(&mut tx).await.unwrap(), 0);
});

on_both!(
    a_transaction_that_began_early_and_commits_late_is_not_missed,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        let late_link = world.create("late").await.unwrap();
        let early_link = world.create("early").await.unwrap();
        if world.database.kind() == Kind::Sqlite {
            // One writer at a time: there is no such transaction.
            return;
        }
        let domain = world.domain.clone();
        let start = mark(&world).await;
        let mut late = world.tx().await;
        links::add_slug(&mut late, &domain, late_link.id, slug("late-2"), now()).await.unwrap();
        let mut early = world.tx().await;
        links::add_slug(&mut early, &domain, early_link.id, slug("early-2"), now()).await.unwrap();
        early.commit().await.unwrap();
        let first = since(&world, start).await;
        assert!(names(&first, "early-2") && !names(&first, "late-2"));
        late.commit().await.unwrap();
        let second = since(&world, first.mark).await;
        assert!(names(&second, "late-2"));
    }
);

fn names(changes: &links::Changes, key: &str) -> bool {
    changes.changes.iter().any(|change| change.key.as_deref() == Some(key))
}

on_both!(a_flood_of_changes_says_forget_everything, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let start = mark(&world).await;
    let mut tx = world.tx().await;
    match tx.conn() {
        db::Conn::Sqlite(conn) => {
            let sql = "INSERT INTO slug_changes (link_id) WITH RECURSIVE n (i) AS \
                       (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) SELECT i FROM n";
            sqlx::query(sql).execute(conn).await.map(drop).unwrap();
        }
        db::Conn::Postgres(pg) => {
            let sql = "INSERT INTO slug_changes (link_id) SELECT generate_series(1, 10001)";
            pg.query(sql).execute(&mut *pg.conn).await.map(drop).unwrap();
        }
    }
    tx.commit().await.unwrap();
    let flood = since(&world, start).await;
    assert!(flood.everything && flood.changes.is_empty());
    // On Postgres any old transaction of the server holds the mark back.
    if world.database.kind() == Kind::Sqlite {
        let after = since(&world, flood.mark).await;
        assert!(!after.everything && after.changes.is_empty());
    }
});
