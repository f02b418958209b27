use crossdock_links as links;
use db::on_both;
use links::{CaseMode, DomainSettings, Error, Fallback, Host, RedirectCode};

use crate::world::{World, content, name, now, url};

on_both!(a_workspace_is_made_once, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let mut tx = world.tx().await;
    let (again, made) = links::ensure_default_workspace(&mut tx, now()).await.unwrap();
    assert_eq!((again.id, made, again.name.as_str()), (world.workspace.id, false, "default"));
    links::set_default_domain(&mut tx, again.id, Some(world.domain.id)).await.unwrap();
    links::set_plan(&mut tx, again.id, links::Plan::Pro).await.unwrap();
    let read = links::workspace(tx.conn(), again.id).await.unwrap();
    assert_eq!((read.default_domain_id, read.plan), (Some(world.domain.id), links::Plan::Pro));
    assert_eq!(links::workspaces(tx.conn()).await.unwrap(), [read]);
});

on_both!(a_host_belongs_to_one_domain, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let host = Host::new("https://GO.example.com/").unwrap();
    let mut tx = world.tx().await;
    let settings = DomainSettings::default();
    let (same, made) =
        links::ensure_domain(&mut tx, world.workspace.id, &host, &settings, now()).await.unwrap();
    assert_eq!((same, made), (world.domain.clone(), false));
    let refused = links::add_domain(&mut tx, world.workspace.id, &host, &settings, now()).await;
    assert!(matches!(refused, Err(Error::HostTaken(host)) if host == "go.example.com"));
    let (foreign, _) = links::ensure_workspace(&mut tx, &name("foreign"), now()).await.unwrap();
    let refused = links::ensure_domain(&mut tx, foreign.id, &host, &settings, now()).await;
    assert!(matches!(refused, Err(Error::HostTaken(_))));
    assert_eq!(links::domain_by_host(tx.conn(), &host).await.unwrap().unwrap(), world.domain);
    let unknown = Host::new("c.example.com").unwrap();
    assert_eq!(links::domain_by_host(tx.conn(), &unknown).await.unwrap(), None);
});

on_both!(a_domains_settings_come_back_and_its_version_rises, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let mut tx = world.tx().await;
    let edited = links::update_domain(&mut tx, world.workspace.id, world.domain.id, Some(1), |settings| {
        settings.root_redirect = Some(url("https://example.com/"));
        settings.fallback_url = Some(Fallback::new("https://old.example.com/{slug}").unwrap());
        settings.expired_url = Some(url("https://example.com/expired"));
        settings.default_redirect_code = RedirectCode::MovedPermanently;
    })
    .await
    .unwrap();
    assert_eq!(links::domain(tx.conn(), world.workspace.id, world.domain.id).await.unwrap(), edited);
    assert_eq!(edited.version, 2);
    let stale = links::update_domain(&mut tx, world.workspace.id, world.domain.id, Some(1), |_| ()).await;
    assert!(matches!(stale, Err(Error::StaleVersion { expected: 1, current: 2 })));
});

on_both!(
    a3_36_a_domain_cannot_fold_case_while_slugs_differ_by_case_only,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        for slug in ["aB", "Ab", "solo", "STRASSE", "straße", "lower", "Ü"] {
            world.create(slug).await.unwrap();
        }
        let fold = |settings: &mut DomainSettings| settings.case_mode = CaseMode::Insensitive;
        let mut tx = world.tx().await;
        let refused = links::update_domain(&mut tx, world.workspace.id, world.domain.id, None, fold).await;
        let Err(Error::CaseCollision { host, slugs }) = &refused else { panic!("{refused:?}") };
        assert_eq!(host, "go.example.com");
        let mut named: Vec<(&str, &str)> = slugs
            .iter()
            .map(|(a, b)| if a < b { (a.as_str(), b.as_str()) } else { (b.as_str(), a.as_str()) })
            .collect();
        named.sort_unstable();
        assert_eq!(named, [("Ab", "aB"), ("STRASSE", "straße")]);
        tx.rollback().await.unwrap();
        let domain = world.domain.clone();
        assert!(world.resolve(&domain, "Ü").await.is_some());
        assert!(world.resolve(&domain, "ü").await.is_none());
    }
);

on_both!(
    a3_39_a_folded_domain_finds_what_was_there_and_can_be_unfolded,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        for slug in ["Abc", "lower", "Ü"] {
            world.create(slug).await.unwrap();
        }
        let deleted = world.create("ABC").await.unwrap();
        let mut tx = world.tx().await;
        links::delete_link(&mut tx, world.workspace.id, deleted.id, None, now()).await.unwrap();
        let fold = |settings: &mut DomainSettings| settings.case_mode = CaseMode::Insensitive;
        let domain =
            links::update_domain(&mut tx, world.workspace.id, world.domain.id, None, fold).await.unwrap();
        tx.commit().await.unwrap();
        for slug in ["ABC", "abc", "LOWER", "ü"] {
            assert!(world.resolve(&domain, slug).await.is_some(), "{slug}");
        }
        // The deleted one was folded too: restored it would collide.
        let mut tx = world.tx().await;
        let refused = links::restore_link(&mut tx, world.workspace.id, deleted.id, None, now()).await;
        assert!(matches!(refused, Err(Error::SlugTaken { slug, .. }) if slug == "Abc"));
        tx.rollback().await.unwrap();
        assert!(world.create_on(&domain, "aBC", content("https://example.com/")).await.is_err());
        let mut tx = world.tx().await;
        let unfold = |settings: &mut DomainSettings| settings.case_mode = CaseMode::Sensitive;
        let domain =
            links::update_domain(&mut tx, world.workspace.id, world.domain.id, None, unfold).await.unwrap();
        tx.commit().await.unwrap();
        assert!(world.resolve(&domain, "abc").await.is_none());
        assert!(world.resolve(&domain, "Abc").await.is_some());
        world.create_on(&domain, "aBC", content("https://example.com/")).await.unwrap();
    }
);
