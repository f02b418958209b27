use crossdock_links as links;
use db::{Id, Timestamp, on_both};
use links::{CaseMode, Content, Filter, NameCount, State};

use crate::world::{JOB, World, content, name, now, slug};

async fn ids(world: &World, filter: &Filter) -> Vec<Id> {
    let mut reader = world.database.read().await.unwrap();
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let page =
            links::list_links(reader.conn(), world.workspace.id, filter, before, 2, now()).await.unwrap();
        found.extend(page.links.iter().map(|link| link.id));
        before = page.next;
        if before.is_none() {
            return found;
        }
    }
}

on_both!(pages_go_from_the_newest_to_the_oldest_and_end, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let mut made = Vec::new();
    for i in 0..5 {
        made.push(world.create(&format!("s{i}")).await.unwrap().id);
    }
    made.sort_unstable();
    made.reverse();
    assert_eq!(ids(&world, &Filter::default()).await, made);
});

on_both!(each_filter_finds_its_links_and_no_others, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let other = world.add_domain("b.example.com", CaseMode::Sensitive).await;
    let domain = world.domain.clone();
    let base = || content("https://example.com/");
    let plain = world.create("plain").await.unwrap().id;
    let tagged = world
        .create_on(&domain, "tagged", Content { tags: vec![name("x"), name("y")], ..base() })
        .await
        .unwrap()
        .id;
    let filed =
        world.create_on(&domain, "filed", Content { folder: Some(name("f")), ..base() }).await.unwrap().id;
    let archived =
        world.create_on(&domain, "archived", Content { archived: true, ..base() }).await.unwrap().id;
    let disabled =
        world.create_on(&domain, "disabled", Content { enabled: false, ..base() }).await.unwrap().id;
    let expired =
        world.create_on(&domain, "expired", Content { expires_at: Some(now()), ..base() }).await.unwrap().id;
    let later = Timestamp::from_micros(now().micros() + 1);
    let old = Content { created_at: Timestamp::from_micros(5), expires_at: Some(later), ..base() };
    let expiring = world.create_on(&domain, "expiring", old).await.unwrap().id;
    let abroad = world.create_on(&other, "abroad", base()).await.unwrap().id;
    let deleted =
        world.create_on(&domain, "deleted", Content { tags: vec![name("x")], ..base() }).await.unwrap().id;
    let imported = world.new_link("imported");
    world.import(std::slice::from_ref(&imported)).await;
    let mut tx = world.tx().await;
    links::add_slug(&mut tx, &other, plain, slug("second"), now()).await.unwrap();
    links::add_slug(&mut tx, &other, plain, slug("third"), now()).await.unwrap();
    links::delete_link(&mut tx, world.workspace.id, deleted, None, now()).await.unwrap();
    tx.commit().await.unwrap();
    let imported = imported.id;
    let all = [imported, abroad, expiring, expired, disabled, archived, filed, tagged, plain];
    let d = Filter::default;
    let state = |state| Filter { state: Some(state), ..d() };
    for (what, filter, expected) in [
        ("all", d(), all.to_vec()),
        ("active", state(State::Active), vec![imported, abroad, expiring, filed, tagged, plain]),
        ("archived", state(State::Archived), vec![archived]),
        ("disabled", state(State::Disabled), vec![disabled]),
        ("expired", state(State::Expired), vec![expired]),
        ("deleted", state(State::Deleted), vec![deleted]),
        ("tag", Filter { tag: Some(name("x")), ..d() }, vec![tagged]),
        ("tag, deleted", Filter { tag: Some(name("x")), ..state(State::Deleted) }, vec![deleted]),
        ("no such tag", Filter { tag: Some(name("z")), ..d() }, vec![]),
        ("folder", Filter { folder: Some(name("f")), ..d() }, vec![filed]),
        ("domain", Filter { domain_id: Some(other.id), ..d() }, vec![abroad, plain]),
        ("domain and tag", Filter { domain_id: Some(other.id), tag: Some(name("x")), ..d() }, vec![]),
        ("job", Filter { import_job: Some(JOB), ..d() }, vec![imported]),
        ("created before", Filter { created_before: Some(now()), ..d() }, vec![expiring]),
        ("created from", Filter { created_from: Some(later), ..d() }, vec![]),
    ] {
        let mut expected = expected;
        expected.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(ids(&world, &filter).await, expected, "{what}");
    }
    let mut reader = world.database.read().await.unwrap();
    let count = |text: &str, links| NameCount { name: name(text), links };
    assert_eq!(links::tags(reader.conn(), world.workspace.id).await.unwrap(), [count("x", 1), count("y", 1)]);
    assert_eq!(links::folders(reader.conn(), world.workspace.id).await.unwrap(), [count("f", 1)]);
});
