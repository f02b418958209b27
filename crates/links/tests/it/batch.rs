use crossdock_links as links;
use db::{Id, on_both};
use links::{CaseMode, Error, ImportedUpdate, Kept, NewLink, Place, Text};

use crate::world::{JOB, World, content, full, name, now, slug, url};

async fn origins(world: &World, source_ids: &[&str]) -> Vec<links::Origin> {
    let mut reader = world.database.read().await.unwrap();
    links::origins_of(reader.conn(), world.workspace.id, "bitly", world.domain.id, source_ids).await.unwrap()
}

async fn read(world: &World, ids: &[Id]) -> Vec<links::ReadBack> {
    let mut reader = world.database.read().await.unwrap();
    links::read_imported(reader.conn(), ids).await.unwrap()
}

on_both!(a_chunk_comes_back_as_it_was_written, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let other = world.add_domain("b.example.com", CaseMode::Insensitive).await;
    let mut chunk: Vec<NewLink> = (0..200).map(|i| world.new_link(&format!("s{i}"))).collect();
    chunk[3].content = full();
    chunk[3].content.tags.push(name("b"));
    chunk[3].slugs.push(Place { domain_id: other.id, slug: slug("Second/구글") });
    // The same place twice is one slug.
    chunk[3].slugs.push(Place { domain_id: other.id, slug: slug("Second/구글") });
    world.import(&chunk).await;
    let ids: Vec<Id> = chunk.iter().map(|link| link.id).collect();
    let back = read(&world, &ids).await;
    assert_eq!(back.len(), chunk.len());
    for (read, written) in back.iter().zip(&chunk) {
        assert_eq!(read.origin.link_id, written.id);
        assert_eq!(read.digest().unwrap(), links::digest(written), "{written:?}");
        assert_eq!(read.origin.imported_digest, links::digest(written));
        assert!(read.origin.is_untouched());
    }
    assert_eq!(world.resolve(&other, "sEcOnD/구글").await.unwrap().link_id, chunk[3].id);
    let provenance = world.link(chunk[3].id).await.unwrap().provenance.unwrap();
    assert_eq!(
        (provenance.vendor.as_str(), provenance.source_id.as_str(), provenance.import_job),
        ("bitly", "s3", JOB)
    );
    world.create("unrelated").await.unwrap();
});

on_both!(what_came_before_is_recognised_whatever_became_of_it, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let chunk: Vec<NewLink> = ["same", "edited", "deleted"].iter().map(|slug| world.new_link(slug)).collect();
    world.import(&chunk).await;
    let mut tx = world.tx().await;
    let workspace = world.workspace.id;
    links::update_link(&mut tx, workspace, chunk[1].id, None, now(), |content| {
        content.title = Some(Text::new("mine"));
        Ok(())
    })
    .await
    .unwrap();
    links::delete_link(&mut tx, workspace, chunk[2].id, None, now()).await.unwrap();
    tx.commit().await.unwrap();
    let mut found = origins(&world, &["same", "edited", "deleted", "new"]).await;
    found.sort_by(|a, b| a.source_id.cmp(&b.source_id));
    let states: Vec<_> =
        found.iter().map(|o| (o.source_id.as_str(), o.is_untouched(), o.is_deleted())).collect();
    assert_eq!(states, [("deleted", false, true), ("edited", false, false), ("same", true, false)]);
    assert_eq!(
        (found[2].imported_version, found[2].source_digest.as_slice(), found[2].job_id),
        (1, &[1u8, 2, 3][..], JOB)
    );
});

on_both!(a_record_that_came_before_is_not_written_again, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    world.import(&[world.new_link("a")]).await;
    let mut again = world.new_link("a");
    again.slugs = vec![world.place("a-2")];
    let mut tx = world.tx().await;
    let refused = links::insert_links(&mut tx, world.workspace.id, &[again], now()).await.unwrap_err();
    assert!(matches!(&refused, Error::Db(error) if error.is_refusal()), "{refused:?}");
});

on_both!(
    slugs_that_somebody_has_are_named_and_nothing_is_overwritten,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        let owner = world.create("taken").await.unwrap();
        let chunk = vec![world.new_link("free"), world.new_link("taken"), world.new_link("twice"), {
            let mut link = world.new_link("twice-other");
            link.slugs = vec![world.place("twice")];
            link
        }];
        let mut tx = world.tx().await;
        tx.savepoint().await.unwrap();
        let lost = links::insert_links(&mut tx, world.workspace.id, &chunk, now()).await.unwrap();
        let mut named: Vec<&str> = lost.iter().map(|lost| lost.place.slug.as_str()).collect();
        named.sort_unstable();
        assert_eq!(named, ["taken", "twice"]);
        assert_eq!(lost.iter().find(|lost| lost.place.slug == slug("taken")).unwrap().link_id, chunk[1].id);
        tx.undo().await.unwrap();
        let places: Vec<Place> = chunk.iter().flat_map(|link| link.slugs.clone()).collect();
        let taken = links::taken(tx.conn(), &places).await.unwrap();
        assert_eq!(taken.len(), 1);
        assert_eq!((taken[0].link_id, taken[0].place.slug.as_str()), (owner.id, "taken"));
        tx.commit().await.unwrap();
        let domain = world.domain.clone();
        assert_eq!(world.resolve(&domain, "taken").await.unwrap().link_id, owner.id);
        assert!(world.resolve(&domain, "free").await.is_none());
    }
);

on_both!(a3_36_two_slugs_that_fold_to_one_meet_in_a_chunk, [&links::ROOM], |database| async move {
    let mut world = World::new(database).await;
    let folding = world.add_domain("b.example.com", CaseMode::Insensitive).await;
    let on = |text: &str| Place { domain_id: folding.id, slug: slug(text) };
    world.create_on(&folding, "Sale", content("https://example.com/")).await.unwrap();
    let mut chunk = vec![world.new_link("1"), world.new_link("2")];
    chunk[0].slugs = vec![on("aB")];
    chunk[1].slugs = vec![on("Ab")];
    let mut tx = world.tx().await;
    let taken = links::taken(tx.conn(), &[on("sALE"), on("aB")]).await.unwrap();
    assert_eq!(
        taken.iter().map(|t| (t.place.slug.as_str(), t.slug.as_str())).collect::<Vec<_>>(),
        [("sALE", "Sale")]
    );
    let lost = links::insert_links(&mut tx, world.workspace.id, &chunk, now()).await.unwrap();
    assert_eq!(lost.len(), 1);
});

on_both!(a_domain_that_does_not_exist_is_named, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let mut link = world.new_link("a");
    link.slugs[0].domain_id = Id::new();
    let mut tx = world.tx().await;
    let refused = links::taken(tx.conn(), &link.slugs).await;
    assert!(matches!(refused, Err(Error::NotFound("domain"))));
    let refused = links::insert_links(&mut tx, world.workspace.id, &[link], now()).await;
    assert!(matches!(refused, Err(Error::NotFound("domain"))));
    let (foreign, _) = links::ensure_workspace(&mut tx, &name("foreign"), now()).await.unwrap();
    let refused = links::insert_links(&mut tx, foreign.id, &[world.new_link("b")], now()).await;
    assert!(matches!(refused, Err(Error::NotFound("domain"))));
});

on_both!(
    what_changed_at_the_source_is_written_unless_somebody_edited_it_here,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        world.create("other").await.unwrap();
        let chunk: Vec<NewLink> = ["a", "b", "c"].iter().map(|slug| world.new_link(slug)).collect();
        world.import(&chunk).await;
        let workspace = world.workspace.id;
        let mut tx = world.tx().await;
        links::update_link(&mut tx, workspace, chunk[1].id, None, now(), |_| Ok(())).await.unwrap();
        links::delete_link(&mut tx, workspace, chunk[2].id, None, now()).await.unwrap();
        tx.commit().await.unwrap();
        let update = |link: &NewLink, slugs: &[&str]| ImportedUpdate {
            link_id: link.id,
            version: 1,
            content: links::Content {
                destination: url("https://example.com/new"),
                tags: vec![name("t")],
                ..full()
            },
            new_slugs: slugs.iter().map(|slug| world.place(slug)).collect(),
            origin: links::NewOrigin {
                source_digest: vec![9],
                job_id: Id::from_stored(78),
                ..world.origin(link.content.destination.as_str().rsplit('/').next().unwrap())
            },
        };
        let mut tx = world.tx().await;
        tx.savepoint().await.unwrap();
        let lost = links::update_imported(&mut tx, workspace, &[update(&chunk[0], &["other"])], now())
            .await
            .unwrap()
            .lost;
        assert_eq!(lost.iter().map(|lost| lost.place.slug.as_str()).collect::<Vec<_>>(), ["other"]);
        tx.undo().await.unwrap();
        let updates =
            [update(&chunk[0], &["a", "a-new"]), update(&chunk[1], &["b-new"]), update(&chunk[2], &[])];
        // The external id of the full content stands once only.
        let updates: Vec<_> = updates
            .into_iter()
            .enumerate()
            .map(|(i, mut u)| {
                if i > 0 {
                    u.content.external_id = None;
                }
                u
            })
            .collect();
        let done = links::update_imported(&mut tx, workspace, &updates, now()).await.unwrap();
        assert_eq!((done.updated, done.stale), (vec![chunk[0].id], vec![chunk[1].id, chunk[2].id]));
        tx.commit().await.unwrap();
        let link = world.link(chunk[0].id).await.unwrap();
        assert_eq!(
            (link.version, link.content.destination, link.slugs.len()),
            (2, url("https://example.com/new"), 2)
        );
        let back = read(&world, &[chunk[0].id]).await;
        assert!(back[0].origin.is_untouched());
        assert_eq!(back[0].digest().unwrap(), back[0].origin.imported_digest);
        assert_eq!(
            (back[0].origin.source_digest.as_slice(), back[0].origin.job_id),
            (&[9u8][..], Id::from_stored(78))
        );
        let domain = world.domain.clone();
        assert!(world.resolve(&domain, "a-new").await.is_some());
        assert!(world.resolve(&domain, "b-new").await.is_none());
    }
);

on_both!(damage_shows_as_another_digest_with_the_same_version, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let link = world.new_link("a");
    world.import(std::slice::from_ref(&link)).await;
    let mut tx = world.tx().await;
    let sql = "UPDATE links SET title = ''";
    match tx.conn() {
        db::Conn::Sqlite(conn) => sqlx::query(sql).execute(conn).await.map(drop).unwrap(),
        db::Conn::Postgres(pg) => pg.query(sql).execute(&mut *pg.conn).await.map(drop).unwrap(),
    }
    tx.commit().await.unwrap();
    let back = read(&world, &[link.id]).await;
    assert!(back[0].origin.is_untouched());
    assert_ne!(back[0].digest().unwrap(), back[0].origin.imported_digest);
});

on_both!(a_fresh_source_digest_is_noted_without_touching_the_link, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    world.import(&[world.new_link("a")]).await;
    let mut tx = world.tx().await;
    let origin = links::NewOrigin { source_digest: vec![7; 16], ..world.origin("a") };
    links::refresh_source_digests(&mut tx, world.workspace.id, &[origin]).await.unwrap();
    tx.commit().await.unwrap();
    let found = origins(&world, &["a"]).await;
    assert_eq!((found[0].source_digest.as_slice(), found[0].is_untouched()), (&[7u8; 16][..], true));
});

on_both!(
    a1_21_an_undo_takes_back_what_the_job_wrote_and_lists_the_rest,
    [&links::ROOM],
    |database| async move {
        let mut world = World::new(database).await;
        let mine = world.create("mine").await.unwrap();
        let mut chunk: Vec<NewLink> = (0..10).map(|i| world.new_link(&format!("s{i}"))).collect();
        for link in &mut chunk {
            link.content.tags = vec![name("imported:bitly")];
            link.content.folder = Some(name("from bitly"));
        }
        world.import(&chunk).await;
        let workspace = world.workspace.id;
        let mut tx = world.tx().await;
        links::update_link(&mut tx, workspace, chunk[4].id, None, now(), |content| {
            content.tags = vec![];
            content.folder = None;
            Ok(())
        })
        .await
        .unwrap();
        links::delete_link(&mut tx, workspace, chunk[5].id, None, now()).await.unwrap();
        let (mut removed, mut kept, mut after) = (0, Vec::new(), None);
        loop {
            let step = links::undo_job(&mut tx, JOB, after, 3).await.unwrap();
            removed += step.removed;
            kept.extend(step.kept);
            after = step.next;
            if after.is_none() {
                break;
            }
        }
        tx.commit().await.unwrap();
        assert_eq!(removed, 8);
        assert_eq!(kept, [(chunk[4].id, Kept::Edited), (chunk[5].id, Kept::Deleted)]);
        let domain = world.domain.clone();
        assert!(world.resolve(&domain, "s0").await.is_none());
        assert!(world.resolve(&domain, "s4").await.is_some());
        assert_eq!(world.resolve(&domain, "mine").await.unwrap().link_id, mine.id);
        // After an undo everything may come again, also what a user had deleted.
        let left: Vec<String> =
            origins(&world, &["s0", "s4", "s5"]).await.into_iter().map(|o| o.source_id).collect();
        assert_eq!(left, ["s4"]);
        let mut reader = world.database.read().await.unwrap();
        // The deleted link still lies in the folder; nobody else does.
        assert_eq!(links::folders(reader.conn(), workspace).await.unwrap().len(), 1);
        let again: Vec<NewLink> = ["s0", "s5"].iter().map(|slug| world.new_link(slug)).collect();
        drop(reader);
        world.import(&again).await;
    }
);

on_both!(an_undo_leaves_no_trace_where_nobody_touched_anything, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let mut chunk: Vec<NewLink> = (0..5).map(|i| world.new_link(&format!("s{i}"))).collect();
    for link in &mut chunk {
        link.content.tags = vec![name("imported:bitly")];
        link.content.folder = Some(name("from bitly"));
    }
    world.import(&chunk).await;
    let mut tx = world.tx().await;
    let step = links::undo_job(&mut tx, JOB, None, 100).await.unwrap();
    assert_eq!(step.removed, 5);
    assert_eq!(links::undo_job(&mut tx, JOB, step.next, 100).await.unwrap(), links::Undone::default());
    for count in ["links", "slugs", "tags", "link_tags", "folders", "link_origins"] {
        assert_eq!(crate::schema::count(&mut tx, count).await, 0, "{count}");
    }
});
