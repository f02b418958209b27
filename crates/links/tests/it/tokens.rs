use crossdock_links as links;
use db::{Timestamp, on_both};
use links::{ApiToken, Error, Scope};

use crate::world::{World, name, now};

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_micros(now().micros() + seconds * 1_000_000)
}

on_both!(a_token_is_recognised_until_it_expires_or_is_revoked, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let mut tx = world.tx().await;
    assert!(!links::any_token(tx.conn()).await.unwrap());
    let scopes = [Scope::LinksWrite, Scope::LinksRead, Scope::LinksWrite];
    let (info, token) = links::create_token(
        &mut tx,
        world.workspace.id,
        &name("ci"),
        &scopes,
        Some(later(100)),
        now(),
        &mut world.chance,
    )
    .await
    .unwrap();
    assert!(links::any_token(tx.conn()).await.unwrap());
    let caller = links::authenticate(tx.conn(), &token, now()).await.unwrap().unwrap();
    assert_eq!((caller.token_id, caller.workspace_id, caller.touch), (info.id, world.workspace.id, true));
    assert_eq!(caller.scopes, [Scope::LinksRead, Scope::LinksWrite]);
    links::touch_token(&mut tx, info.id, now()).await.unwrap();
    assert!(!links::authenticate(tx.conn(), &token, later(59)).await.unwrap().unwrap().touch);
    assert!(links::authenticate(tx.conn(), &token, later(60)).await.unwrap().unwrap().touch);
    assert_eq!(links::authenticate(tx.conn(), &token, later(100)).await.unwrap(), None);
    let listed = links::tokens(tx.conn(), world.workspace.id).await.unwrap();
    assert_eq!(
        (listed.len(), listed[0].prefix.as_str(), listed[0].last_used_at),
        (1, &token.reveal()[..8], Some(now()))
    );
    links::revoke_token(&mut tx, world.workspace.id, info.id, now()).await.unwrap();
    links::revoke_token(&mut tx, world.workspace.id, info.id, later(5)).await.unwrap();
    assert_eq!(links::authenticate(tx.conn(), &token, now()).await.unwrap(), None);
    assert_eq!(links::tokens(tx.conn(), world.workspace.id).await.unwrap()[0].revoked_at, Some(now()));
});

on_both!(a_token_nobody_made_stands_for_nobody, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let token = ApiToken::generate(&mut world.chance);
    let mut reader = world.database.read().await.unwrap();
    assert_eq!(links::authenticate(reader.conn(), &token, now()).await.unwrap(), None);
});

on_both!(a_token_is_revoked_by_its_own_workspace_only, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let mut tx = world.tx().await;
    let (info, _) = links::create_token(
        &mut tx,
        world.workspace.id,
        &name("ci"),
        &Scope::ALL,
        None,
        now(),
        &mut world.chance,
    )
    .await
    .unwrap();
    let (foreign, _) = links::ensure_workspace(&mut tx, &name("foreign"), now()).await.unwrap();
    let refused = links::revoke_token(&mut tx, foreign.id, info.id, now()).await;
    assert!(matches!(refused, Err(Error::NotFound("token"))));
    assert_eq!(links::tokens(tx.conn(), foreign.id).await.unwrap(), []);
});
