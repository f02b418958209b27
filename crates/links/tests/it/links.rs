use crossdock_links as links;
use db::on_both;
use links::{CaseMode, Content, Error, RedirectCode, SlugChoice};

use crate::world::{World, content, full, name, now, slug, url};

on_both!(a_link_comes_back_with_everything_that_was_set, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    let made = world.create_on(&domain, "Sale/ü", full()).await.unwrap();
    let read = world.link(made.id).await.unwrap();
    assert_eq!(read, made);
    let mut expected = full();
    expected.tags.sort();
    assert_eq!(read.content, expected);
    assert_eq!(
        (read.version, read.slugs[0].slug.as_str(), read.slugs[0].host.as_str()),
        (1, "Sale/ü", "go.example.com")
    );
});

on_both!(a1_11_a_taken_slug_is_refused_and_its_owner_named, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let owner = world.create("sale").await.unwrap();
    match world.create("sale").await.unwrap_err() {
        Error::SlugTaken { host, slug, link_id } => {
            assert_eq!((host.as_str(), slug.as_str(), link_id), ("go.example.com", "sale", owner.id));
        }
        other => panic!("{other:?}"),
    }
});

on_both!(a1_7_the_same_slug_lives_on_two_domains, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let other = world.add_domain("b.example.com", CaseMode::Sensitive).await;
    world.create("x").await.unwrap();
    world.create_on(&other, "x", content("https://example.com/b")).await.unwrap();
    assert_eq!(world.resolve(&other, "x").await.unwrap().destination, url("https://example.com/b"));
    let own = world.domain.clone();
    assert_eq!(world.resolve(&own, "x").await.unwrap().destination, url("https://example.com/"));
});

on_both!(a3_35_36_case_is_the_domains_choice, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let folding = world.add_domain("b.example.com", CaseMode::Insensitive).await;
    let sensitive = world.domain.clone();
    for (domain, other_case_is_free) in [(&sensitive, true), (&folding, false)] {
        world.create_on(domain, "GitHub", content("https://example.com/1")).await.unwrap();
        assert_eq!(world.resolve(domain, "github").await.is_none(), other_case_is_free);
        let second = world.create_on(domain, "gitHUB", content("https://example.com/2")).await;
        match second {
            Ok(_) => assert!(other_case_is_free),
            Err(Error::SlugTaken { slug, .. }) => {
                assert_eq!((slug.as_str(), other_case_is_free), ("GitHub", false));
            }
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(world.resolve(domain, "GitHub").await.unwrap().destination, url("https://example.com/1"));
    }
});

on_both!(a3_44_45_cjk_emoji_and_decomposed_slugs_are_found, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    for text in ["구글", "🚀", "ö", "a/b", "setup.sh"] {
        world.create(text).await.unwrap();
        assert!(world.resolve(&domain, text).await.is_some(), "{text}");
    }
    assert!(world.resolve(&domain, "o\u{308}").await.is_some());
    assert!(world.resolve(&domain, "O\u{308}").await.is_none());
});

on_both!(a3_49_reserved_names_and_loops_are_refused, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    for text in ["robots.txt", "favicon.ico", ".well-known/x"] {
        assert!(matches!(world.create(text).await, Err(Error::InvalidState(_))), "{text}");
    }
    for text in ["api", "health", "rest"] {
        world.create(text).await.unwrap();
    }
    let looping = world.create_on(&domain, "loop", content("https://go.example.com/loop")).await;
    assert!(matches!(looping, Err(Error::InvalidState(_))));
    let link = world.create("loop").await.unwrap();
    let mut tx = world.tx().await;
    let edited = links::update_link(&mut tx, world.workspace.id, link.id, None, now(), |content| {
        content.destination = url("http://GO.example.com/loop/");
        Ok(())
    });
    assert!(matches!(edited.await, Err(Error::InvalidState(_))));
});

on_both!(a_random_slug_is_found_and_never_taken_twice, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let mut tx = world.tx().await;
    for _ in 0..50 {
        let domain = world.domain.clone();
        let made = links::create_link(
            &mut tx,
            &domain,
            SlugChoice::Random,
            content("https://example.com/"),
            now(),
            &mut world.chance,
        )
        .await
        .unwrap();
        assert_eq!(made.slugs[0].slug.as_str().len(), links::GENERATED_LENGTH);
    }
    // The same chance again meets taken slugs and goes on to longer ones.
    let mut again = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1);
    let domain = world.domain.clone();
    let made = links::create_link(
        &mut tx,
        &domain,
        SlugChoice::Random,
        content("https://example.com/"),
        now(),
        &mut again,
    )
    .await
    .unwrap();
    assert_eq!(made.slugs[0].slug.as_str().len(), links::GENERATED_LENGTH + 1);
});

on_both!(
    an_edit_with_an_old_version_is_refused_and_names_the_current_one,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        let link = world.create("sale").await.unwrap();
        let mut tx = world.tx().await;
        let edited = links::update_link(
            &mut tx,
            world.workspace.id,
            link.id,
            Some(1),
            now(),
            |content: &mut Content| {
                content.title = Some(links::Text::new("new"));
                content.tags = vec![name("x"), name("y")];
                content.folder = Some(name("f"));
                Ok(())
            },
        )
        .await
        .unwrap();
        assert_eq!((edited.version, edited.content.tags.len()), (2, 2));
        let stale =
            links::update_link(&mut tx, world.workspace.id, link.id, Some(1), now(), |_| Ok(())).await;
        assert!(matches!(stale, Err(Error::StaleVersion { expected: 1, current: 2 })), "{stale:?}");
        let stale = links::delete_link(&mut tx, world.workspace.id, link.id, Some(1), now()).await;
        assert!(matches!(stale, Err(Error::StaleVersion { expected: 1, current: 2 })));
        let edited = links::update_link(&mut tx, world.workspace.id, link.id, Some(2), now(), |content| {
            content.tags = vec![name("y")];
            content.folder = None;
            Ok(())
        });
        let edited = edited.await.unwrap();
        assert_eq!((edited.content.tags, edited.content.folder), (vec![name("y")], None));
    }
);

on_both!(
    a_deleted_link_frees_its_slug_and_comes_back_only_if_it_is_still_free,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        let domain = world.domain.clone();
        let first = world.create("sale").await.unwrap();
        let mut tx = world.tx().await;
        links::delete_link(&mut tx, world.workspace.id, first.id, None, now()).await.unwrap();
        tx.commit().await.unwrap();
        assert!(world.resolve(&domain, "sale").await.is_none());
        let second = world.create("sale").await.unwrap();
        let mut tx = world.tx().await;
        let refused = links::restore_link(&mut tx, world.workspace.id, first.id, None, now()).await;
        assert!(
            matches!(refused, Err(Error::SlugTaken { link_id, .. }) if link_id == second.id),
            "{refused:?}"
        );
        let again = links::delete_link(&mut tx, world.workspace.id, first.id, None, now()).await;
        assert!(matches!(again, Err(Error::NotFound("link"))));
        links::delete_link(&mut tx, world.workspace.id, second.id, None, now()).await.unwrap();
        let restored = links::restore_link(&mut tx, world.workspace.id, first.id, None, now()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!((restored.version, restored.deleted_at), (3, None));
        assert_eq!(world.resolve(&domain, "sale").await.unwrap().link_id, first.id);
    }
);

on_both!(a_restore_that_somebody_overtakes_names_the_link_that_won, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    if world.database.kind() == db::Kind::Sqlite {
        // One writer at a time: nobody can overtake.
        return;
    }
    let (domain, workspace) = (world.domain.clone(), world.workspace.id);
    let first = world.create("a").await.unwrap();
    let mut tx = world.tx().await;
    links::add_slug(&mut tx, &domain, first.id, slug("sale"), now()).await.unwrap();
    links::delete_link(&mut tx, workspace, first.id, None, now()).await.unwrap();
    tx.commit().await.unwrap();

    let mut winner = world.tx().await;
    let choice = SlugChoice::Given(slug("sale"));
    let content = content("https://example.com/");
    let second = links::create_link(&mut winner, &domain, choice, content, now(), &mut world.chance);
    let second = second.await.unwrap();
    let restoring = tokio::spawn({
        let database = world.database.clone();
        async move {
            let mut tx = database.begin().await.unwrap();
            links::restore_link(&mut tx, workspace, first.id, None, now()).await
        }
    });
    let mut reader = world.database.read().await.unwrap();
    let began = std::time::Instant::now();
    loop {
        let db::Conn::Postgres(pg) = reader.conn() else { unreachable!("the database is Postgres") };
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waiting: i64 = pg.scalar(sql).fetch_one(&mut *pg.conn).await.unwrap();
        if waiting > 0 {
            break;
        }
        assert!(began.elapsed().as_secs() < 30 && !restoring.is_finished(), "nobody waits for the slug");
        tokio::task::yield_now().await;
    }
    winner.commit().await.unwrap();
    match restoring.await.unwrap().unwrap_err() {
        Error::SlugTaken { host, slug, link_id } => {
            assert_eq!((host.as_str(), slug.as_str(), link_id), ("go.example.com", "sale", second.id));
        }
        other => panic!("{other:?}"),
    }
});

on_both!(a_link_has_several_slugs_and_keeps_the_last, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    let link = world.create("a").await.unwrap();
    world.create("taken").await.unwrap();
    let mut tx = world.tx().await;
    let two = links::add_slug(&mut tx, &domain, link.id, slug("b"), now()).await.unwrap();
    assert_eq!((two.slugs.len(), two.version), (2, 2));
    let refused = links::add_slug(&mut tx, &domain, link.id, slug("taken"), now()).await;
    assert!(matches!(refused, Err(Error::SlugTaken { .. })));
    let one =
        links::remove_slug(&mut tx, world.workspace.id, link.id, &world.place("a"), now()).await.unwrap();
    assert_eq!(one.slugs[0].slug, slug("b"));
    let refused = links::remove_slug(&mut tx, world.workspace.id, link.id, &world.place("b"), now()).await;
    assert!(matches!(refused, Err(Error::InvalidState(_))));
    let refused = links::remove_slug(&mut tx, world.workspace.id, link.id, &world.place("a"), now()).await;
    assert!(matches!(refused, Err(Error::NotFound("slug"))));
    tx.commit().await.unwrap();
    assert!(world.resolve(&domain, "a").await.is_none());
    assert_eq!(world.resolve(&domain, "b").await.unwrap().link_id, link.id);
});

on_both!(an_external_id_is_unique_in_its_workspace, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    let keyed = |key: &str| Content { external_id: Some(name(key)), ..content("https://example.com/") };
    let first = world.create_on(&domain, "a", keyed("order-1")).await.unwrap();
    let refused = world.create_on(&domain, "b", keyed("order-1")).await;
    assert!(matches!(&refused, Err(Error::ExternalIdTaken(id)) if id == "order-1"), "{refused:?}");
    let second = world.create_on(&domain, "c", keyed("order-2")).await.unwrap();
    let mut tx = world.tx().await;
    let refused = links::update_link(&mut tx, world.workspace.id, second.id, None, now(), |content| {
        content.external_id = Some(name("order-1"));
        Ok(())
    });
    assert!(matches!(refused.await, Err(Error::ExternalIdTaken(_))));
    drop(tx);
    let mut reader = world.database.read().await.unwrap();
    let found = links::link_id_of_external(reader.conn(), world.workspace.id, "order-1").await.unwrap();
    assert_eq!(found, Some(first.id));
});

on_both!(another_workspaces_objects_do_not_exist, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let link = world.create("a").await.unwrap();
    let mut tx = world.tx().await;
    let (foreign, _) = links::ensure_workspace(&mut tx, &name("foreign"), now()).await.unwrap();
    let id = foreign.id;
    assert!(matches!(links::link_by_id(tx.conn(), id, link.id).await, Err(Error::NotFound("link"))));
    assert!(matches!(links::link_at(&mut tx, id, &world.place("a")).await, Err(Error::NotFound("link"))));
    assert!(matches!(links::domain(tx.conn(), id, world.domain.id).await, Err(Error::NotFound("domain"))));
    let edited = links::update_link(&mut tx, id, link.id, None, now(), |_| Ok(())).await;
    assert!(matches!(edited, Err(Error::NotFound("link"))));
    let deleted = links::delete_link(&mut tx, id, link.id, None, now()).await;
    assert!(matches!(deleted, Err(Error::NotFound("link"))));
    let set = links::set_default_domain(&mut tx, id, Some(world.domain.id)).await;
    assert!(matches!(set, Err(Error::NotFound("domain"))));
    assert_eq!(links::link_at(&mut tx, world.workspace.id, &world.place("a")).await.unwrap().id, link.id);
});

on_both!(a5_what_a_redirect_needs_is_resolved_in_one_look_up, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    let made = world.create_on(&domain, "a", full()).await.unwrap();
    let resolved = world.resolve(&domain, "a").await.unwrap();
    assert_eq!(
        resolved,
        links::Resolved {
            link_id: made.id,
            destination: full().destination,
            redirect_code: Some(RedirectCode::PermanentRedirect),
            query_passthrough: false,
            enabled: false,
            archived: true,
            expires_at: full().expires_at,
            expired_url: full().expired_url,
            password_protected: true,
            version: 1,
            source: None,
        }
    );
    world.import(&[world.new_link("b")]).await;
    let source = world.resolve(&domain, "b").await.unwrap().source.unwrap();
    assert_eq!((source.vendor(), source.id(), source.reference().as_str()), ("bitly", "b", "bitly:b"));
});

on_both!(a3_42_the_exact_slug_is_preferred_to_the_other_spelling, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    let with = world.create("spring/").await.unwrap();
    let either = async |world: &World, key: &str, other: &str| {
        let mut reader = world.database.read().await.unwrap();
        let found = links::resolve_either(reader.conn(), domain.id, key, other).await.unwrap();
        found.map(|(resolved, by_other)| (resolved.link_id, by_other))
    };
    assert_eq!(either(&world, "spring", "spring/").await, Some((with.id, true)));
    assert_eq!(either(&world, "spring/", "spring").await, Some((with.id, false)));
    assert_eq!(either(&world, "spring", "spring").await, None);
    let without = world.create("spring").await.unwrap();
    assert_eq!(either(&world, "spring", "spring/").await, Some((without.id, false)));
    assert_eq!(either(&world, "spring/", "spring").await, Some((with.id, false)));
});

on_both!(a4_60_a_script_that_got_into_the_database_is_not_served, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let domain = world.domain.clone();
    world.create("a").await.unwrap();
    let mut tx = world.tx().await;
    let sql = "UPDATE links SET destination = 'javascript:alert(1)'";
    match tx.conn() {
        db::Conn::Sqlite(conn) => sqlx::query(sql).execute(conn).await.map(drop).unwrap(),
        db::Conn::Postgres(pg) => pg.query(sql).execute(&mut *pg.conn).await.map(drop).unwrap(),
    }
    tx.commit().await.unwrap();
    assert!(world.resolve(&domain, "a").await.is_none());
});
