//! When changes are seen, on this node and on others.

use std::time::{Duration, Instant};

use links::{DomainSettings, Host};

use crate::server::{HOST, Server};

db::on_both!(
    a_change_through_this_node_is_seen_by_its_next_request,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        assert_eq!(server.get("/new").await.status, 404);
        let body = r#"{"destination_url":"https://one.example/","slug":"new"}"#;
        let created = server.api("POST", "/v1/links", body).await;
        assert_eq!(created.status, 201, "{}", created.body);
        let path = format!("/v1/links/{}", created.json()["id"].as_str().unwrap());
        assert_eq!(server.get("/new").await.location(), Some("https://one.example/"));
        server.api("PATCH", &path, r#"{"destination_url":"https://two.example/"}"#).await;
        assert_eq!(server.get("/new").await.location(), Some("https://two.example/"));
        server.api("PATCH", &path, r#"{"enabled":false}"#).await;
        assert_eq!(server.get("/new").await.status, 404);
        server.api("PATCH", &path, r#"{"enabled":true,"slug":"renamed"}"#).await;
        assert_eq!(server.get("/new").await.status, 404);
        assert_eq!(server.get("/renamed/").await.location(), Some("https://two.example/"));
        let body = r#"{"destination_url":"https://three.example/","slug":"renamed/"}"#;
        let third = server.api("POST", "/v1/links", body).await;
        assert_eq!(third.status, 201);
        assert_eq!(server.get("/renamed/").await.location(), Some("https://three.example/"));
        let third = format!("/v1/links/{}", third.json()["id"].as_str().unwrap());
        assert_eq!(server.api("DELETE", &third, "").await.status, 204);
        assert_eq!(server.get("/renamed/").await.location(), Some("https://two.example/"));
        assert_eq!(server.api("DELETE", &path, "").await.status, 204);
        assert_eq!(server.get("/renamed").await.status, 404);
        server.stop().await;
    }
);

db::on_both!(
    a3_42_the_other_spelling_of_a_slash_gives_way_as_soon_as_the_exact_slug_is_there,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let make = async |slug: &str| {
            let body =
                serde_json::json!({"destination_url": format!("https://{slug}.example/x"), "slug": slug});
            let made = server.api("POST", "/v1/links", &body.to_string()).await.json();
            format!("/v1/links/{}", made["id"].as_str().unwrap())
        };
        for (first, second) in [("a/", "a"), ("b", "b/")] {
            let (of_first, of_second) =
                (format!("https://{first}.example/x"), format!("https://{second}.example/x"));
            let path = format!("/{second}");
            assert_eq!(server.get(&path).await.status, 404);
            make(first).await;
            for _ in 0..2 {
                assert_eq!(server.get(&path).await.location(), Some(of_first.as_str()), "{path}");
            }
            let exact = make(second).await;
            assert_eq!(server.get(&path).await.location(), Some(of_second.as_str()), "{path}");
            assert_eq!(server.get(&format!("/{first}")).await.location(), Some(of_first.as_str()));
            assert_eq!(server.api("DELETE", &exact, "").await.status, 204);
            assert_eq!(server.get(&path).await.location(), Some(of_first.as_str()), "{path}");
        }
        // What nobody tells of is seen a second later at the latest.
        server.imported_link("c/", "https://with.example/").await;
        assert_eq!(server.get("/c").await.location(), Some("https://with.example/"));
        server.imported_link("c", "https://without.example/").await;
        assert_eq!(server.get("/c").await.location(), Some("https://with.example/"));
        server.clock.advance(Duration::from_secs(1));
        assert_eq!(server.get("/c").await.location(), Some("https://without.example/"));
        server.stop().await;
    }
);

db::on_both!(
    what_imports_add_is_seen_as_soon_as_they_say_so,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        assert_eq!(server.get("/a").await.status, 404);
        server.imported_link("a", "https://example.com/").await;
        assert_eq!(
            server.get("/a").await.status,
            404,
            "the absence is kept for a second of a clock that stands still"
        );
        server.redirects.slugs_added();
        assert_eq!(server.get("/a").await.status, 302);
        server.stop().await;
    }
);

db::on_both!(
    an_absence_is_believed_for_a_second_at_most,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        assert_eq!(server.get("/a").await.status, 404);
        server.link("a", "https://example.com/").await;
        server.clock.advance(Duration::from_secs(1));
        assert_eq!(server.get("/a").await.status, 302);
        server.stop().await;
    }
);

/// Asks until the answer is the expected one, for at most the promised 2 seconds and some grace for a busy machine.
async fn eventually(server: &Server, path: &str, expected: (u16, Option<&str>)) -> Duration {
    let began = Instant::now();
    loop {
        let answer = server.get(path).await;
        if answer.redirect() == expected {
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{path}: {answer:?}");
        tokio::task::yield_now().await;
    }
}

db::on_both!(
    a_change_by_somebody_else_arrives_through_the_feed,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let link = server.link("a", "https://one.example/").await;
        assert_eq!(server.get("/a").await.location(), Some("https://one.example/"));
        let mut tx = database.begin().await.unwrap();
        let now = server.domain.created_at;
        let destination = links::Destination::new("https://two.example/").unwrap();
        let edit = |content: &mut links::Content| {
            content.destination = destination;
            Ok(())
        };
        links::update_link(&mut tx, server.workspace, link.id, None, now, edit).await.unwrap();
        tx.commit().await.unwrap();
        eventually(&server, "/a", (302, Some("https://two.example/"))).await;

        let mut tx = database.begin().await.unwrap();
        links::delete_link(&mut tx, server.workspace, link.id, None, now).await.unwrap();
        tx.commit().await.unwrap();
        eventually(&server, "/a", (404, None)).await;
        server.stop().await;
    }
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_numbered_early_and_committed_late_is_seen_on_postgres() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&links::ROOM]).await;
    let database = test.database.clone();
    let server = Server::start(database.clone()).await;
    let (early, late) = (
        server.link("early", "https://one.example/").await,
        server.link("late", "https://one.example/").await,
    );
    for path in ["/early", "/late"] {
        assert_eq!(server.get(path).await.status, 302);
    }
    let now = server.domain.created_at;
    let disable = |content: &mut links::Content| {
        content.enabled = false;
        Ok(())
    };
    let mut first = database.begin().await.unwrap();
    links::update_link(&mut first, server.workspace, early.id, None, now, disable).await.unwrap();
    let mut second = database.begin().await.unwrap();
    links::update_link(&mut second, server.workspace, late.id, None, now, disable).await.unwrap();
    second.commit().await.unwrap();
    // Once the later one was seen, the feed has been read past the number of the earlier one.
    eventually(&server, "/late", (404, None)).await;
    assert_eq!(server.get("/early").await.status, 302);
    first.commit().await.unwrap();
    eventually(&server, "/early", (404, None)).await;
    server.stop().await;
    test.close().await;
}

db::on_both!(
    a_domain_that_somebody_else_adds_is_served,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        assert_eq!(server.ask("GET", "new.example.com", "/").await.status, 404);
        let mut tx = database.begin().await.unwrap();
        let settings = DomainSettings {
            root_redirect: Some(links::Destination::new("https://www.example.com/").unwrap()),
            ..DomainSettings::default()
        };
        let host = Host::new("new.example.com").unwrap();
        links::add_domain(&mut tx, server.workspace, &host, &settings, server.domain.created_at)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let began = Instant::now();
        while server.ask("GET", "new.example.com", "/").await.status != 302 {
            assert!(began.elapsed() < Duration::from_secs(10));
            tokio::task::yield_now().await;
        }
        assert_eq!(server.ask("GET", HOST, "/").await.status, 404);
        server.stop().await;
    }
);

db::on_both!(
    without_its_database_known_links_go_on_and_the_rest_is_told_to_come_back,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        server.imported_link("a", "https://example.com/").await;
        assert_eq!(server.get("/a").await.status, 302);
        database.close().await;
        assert_eq!(server.get("/a").await.redirect(), (302, Some("https://example.com/")));
        let unknown = server.get("/b").await;
        assert_eq!((unknown.status, unknown.header("retry-after")), (503, Some("1")));
        let ready = server.ask("GET", "localhost", "/readyz").await;
        let (code, retry) = (ready.json()["code"].clone(), ready.header("retry-after"));
        assert_eq!((ready.status, code.as_str(), retry), (503, Some("unavailable"), Some("1")));
        assert_eq!(server.ask("GET", "localhost", "/healthz").await.status, 200);
        server.stop().await;
    }
);

/// Writes a destination past everything that tells of changes, the feed included.
async fn rewrite_silently(database: &db::Database, link: &str, destination: &str) {
    let mut tx = database.begin().await.unwrap();
    match tx.conn() {
        db::Conn::Sqlite(conn) => {
            let sql = "UPDATE links SET destination = ? WHERE source_id = ?";
            sqlx::query(sql).bind(destination).bind(link).execute(conn).await.map(drop).unwrap();
        }
        db::Conn::Postgres(pg) => {
            let sql = "UPDATE links SET destination = $1 WHERE source_id = $2";
            pg.query(sql).bind(destination).bind(link).execute(&mut *pg.conn).await.map(drop).unwrap();
        }
    }
    tx.commit().await.unwrap();
}

db::on_both!(
    a_link_that_an_import_writes_again_is_seen_at_once_and_the_others_stay_in_memory,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: db::Database| async move {
        use engine::Outcome;
        let server = Server::start(database.clone()).await;
        server.import().await;
        let (one, three) = ("https://one.example/", "https://three.example/");
        let written = server.written.lock().unwrap().clone();
        let told = |outcome: Outcome| {
            let of =
                |slug: &str| written.iter().find(|record| record.source_id.as_deref() == Some(slug)).cloned();
            engine::Written { outcome, ..of("one").unwrap() }
        };
        for outcome in [Outcome::Updated, Outcome::Skipped, Outcome::Filtered, Outcome::Failed] {
            rewrite_silently(&database, "one", one).await;
            server.redirects.everything_changed();
            assert_eq!(server.get("/one").await.location(), Some(one));
            assert_eq!(server.get("/three").await.location(), Some(three));
            for link in ["one", "three"] {
                rewrite_silently(&database, link, "https://new.example/").await;
            }
            let nothing = engine::Written { reference: None, ..told(outcome) };
            server.redirects.imported(&[told(Outcome::Unchanged), told(Outcome::DuplicateInSource), nothing]);
            assert_eq!(server.get("/one").await.location(), Some(one), "nothing was written");
            server.redirects.imported(&[told(outcome)]);
            assert_eq!(server.get("/one").await.location(), Some("https://new.example/"), "{outcome:?}");
            assert_eq!(server.get("/three").await.location(), Some(three), "{outcome:?}");
            rewrite_silently(&database, "three", three).await;
        }
        assert_eq!(server.get("/later").await.status, 404);
        server.imported_link("later", one).await;
        server.redirects.imported(&[told(Outcome::Skipped)]);
        assert_eq!(server.get("/later").await.location(), Some(one), "a slug may have come with it");
        server.stop().await;
    }
);
