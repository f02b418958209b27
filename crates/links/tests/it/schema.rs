//! The schema refuses on its own what the code never writes.

use crossdock_links as links;
use db::{Conn, Tx, on_both};

use crate::world::{World, name};

pub(crate) async fn count(tx: &mut Tx, table: &str) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    match tx.conn() {
        Conn::Sqlite(conn) => sqlx::query_scalar(sql).fetch_one(conn).await.unwrap(),
        Conn::Postgres(pg) => sqlx::query_scalar(sql).fetch_one(&mut *pg.conn).await.unwrap(),
    }
}

async fn execute(tx: &mut Tx, sql: String) -> Result<u64, db::Error> {
    let sql = sqlx::AssertSqlSafe(sql);
    Ok(match tx.conn() {
        Conn::Sqlite(conn) => sqlx::query(sql).execute(conn).await?.rows_affected(),
        Conn::Postgres(pg) => sqlx::query(sql).execute(&mut *pg.conn).await?.rows_affected(),
    })
}

on_both!(values_outside_the_rules_are_refused, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let link = world.create("a").await.unwrap();
    let other = world.create("b").await.unwrap();
    let (link, other, domain) = (link.id.get(), other.id.get(), world.domain.id.get());
    for statement in [
        "UPDATE workspaces SET plan = 'gold'".into(),
        "UPDATE workspaces SET name = ''".into(),
        "UPDATE domains SET case_mode = 'maybe'".into(),
        "UPDATE domains SET default_redirect_code = 303".into(),
        "UPDATE links SET redirect_code = 200".into(),
        "UPDATE links SET destination = ''".into(),
        format!("UPDATE slugs SET folded = 'b' WHERE link_id = {link}"),
        format!("INSERT INTO slugs (link_id, domain_id, slug, folded) VALUES ({other}, {domain}, 'a', 'a')"),
        format!("UPDATE links SET folder_id = 1 WHERE id = {link}"),
        "UPDATE links SET external_id = 'same'".into(),
        "UPDATE workspaces SET default_domain_id = 1".into(),
    ] {
        let mut tx = world.tx().await;
        let refused = execute(&mut tx, statement.clone()).await;
        assert!(refused.as_ref().is_err_and(db::Error::is_refusal), "{statement}: {refused:?}");
    }
});

on_both!(a_workspace_takes_everything_of_its_own_with_it, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let mut chunk = vec![world.new_link("a")];
    chunk[0].content.tags = vec![name("t")];
    chunk[0].content.folder = Some(name("f"));
    world.import(&chunk).await;
    let mut tx = world.tx().await;
    links::set_default_domain(&mut tx, world.workspace.id, Some(world.domain.id)).await.unwrap();
    links::create_token(
        &mut tx,
        world.workspace.id,
        &name("t"),
        &links::Scope::ALL,
        None,
        crate::world::now(),
        &mut world.chance,
    )
    .await
    .unwrap();
    execute(&mut tx, format!("DELETE FROM workspaces WHERE id = {}", world.workspace.id.get()))
        .await
        .unwrap();
    for table in ["domains", "links", "slugs", "tags", "link_tags", "folders", "link_origins", "api_tokens"] {
        assert_eq!(count(&mut tx, table).await, 0, "{table}");
    }
});

on_both!(a_domain_that_goes_leaves_the_workspace_without_a_default, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let mut tx = world.tx().await;
    links::set_default_domain(&mut tx, world.workspace.id, Some(world.domain.id)).await.unwrap();
    execute(&mut tx, format!("DELETE FROM domains WHERE id = {}", world.domain.id.get())).await.unwrap();
    let workspace = links::workspace(tx.conn(), world.workspace.id).await.unwrap();
    assert_eq!(workspace.default_domain_id, None);
});
