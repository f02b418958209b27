//! What a link answers: the rows of the public failure cases that speak of requests.

use std::time::Duration;

use links::{CaseMode, Destination, DomainSettings, Fallback, Host, RedirectCode};

use crate::client::raw;
use crate::server::{HOST, Server};

db::on_both!(a3_35_39_the_domain_decides_about_case, [&links::ROOM], |database: db::Database| async move {
    let settings = DomainSettings { case_mode: CaseMode::Insensitive, ..DomainSettings::default() };
    let server = Server::with(database, settings, |_| {}).await;
    server.link("GitHub", "https://github.example/").await;
    server.link("abc", "https://abc.example/").await;
    server.link("Spring/", "https://spring.example/").await;
    server.link("Größe", "https://size.example/").await;
    for (path, location) in [
        ("/github", "https://github.example/"),
        ("/GITHUB", "https://github.example/"),
        ("/GitHub/", "https://github.example/"),
        ("/SPRING", "https://spring.example/"),
        ("/ABC", "https://abc.example/"),
        ("/GR%C3%96SSE", "https://size.example/"),
    ] {
        assert_eq!(server.get(path).await.redirect(), (302, Some(location)), "{path}");
    }
    server.stop().await;
});

db::on_both!(
    a3_35_a_case_sensitive_domain_tells_spellings_apart,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        server.link("aB", "https://one.example/").await;
        server.link("Ab", "https://two.example/").await;
        assert_eq!(server.get("/aB").await.location(), Some("https://one.example/"));
        assert_eq!(server.get("/Ab").await.location(), Some("https://two.example/"));
        assert_eq!(server.get("/ab").await.status, 404);
        server.stop().await;
    }
);

db::on_both!(
    a3_42_a_trailing_slash_makes_no_difference_unless_both_spellings_are_links,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        server.link("a", "https://a.example/").await;
        server.link("a/b", "https://ab.example/").await;
        server.link("own", "https://own.example/").await;
        server.link("own/", "https://slash.example/").await;
        server.link("spring/", "https://spring.example/").await;
        server.link("spring/sale/", "https://sale.example/").await;
        server.link("ö/", "https://oe.example/").await;
        server.link("open/", "https://open.example/").await;
        server.link_with("open", "https://off.example/", |content| content.enabled = false).await;
        let longest = "l".repeat(links::SLUG_LENGTH_MAX);
        server.link(&longest, "https://longest.example/").await;
        for (path, location) in [
            (format!("/{longest}").as_str(), Some("https://longest.example/")),
            (&format!("/{longest}/"), Some("https://longest.example/")),
            (&format!("/{longest}x/"), None),
            ("/a", Some("https://a.example/")),
            ("/a/", Some("https://a.example/")),
            ("/a/b", Some("https://ab.example/")),
            ("/a/b/", Some("https://ab.example/")),
            ("/own", Some("https://own.example/")),
            ("/own/", Some("https://slash.example/")),
            ("/spring", Some("https://spring.example/")),
            ("/spring/", Some("https://spring.example/")),
            ("/spring/sale", Some("https://sale.example/")),
            ("/%C3%B6", Some("https://oe.example/")),
            ("/open/", Some("https://open.example/")),
            // The exact slug wins, whatever its link answers.
            ("/open", None),
            ("/sale", None),
            ("/a//", None),
        ] {
            for _ in 0..2 {
                let status = if location.is_some() { 302 } else { 404 };
                assert_eq!(server.get(path).await.redirect(), (status, location), "{path}");
            }
        }
        server.stop().await;
    }
);

db::on_both!(
    a3_40_44_45_48_49_slugs_of_every_kind_are_reached,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        for slug in [
            "a/b/c",
            "구글",
            "🚀",
            "ö",
            "setup.sh",
            "photo.png",
            "v1.2",
            "api",
            "health",
            "v1/links",
            "metrics",
            "a+b",
            "1&x=y",
        ] {
            server.link(slug, &format!("https://example.com/{}", slug.len())).await;
        }
        for (path, length) in [
            ("/a/b/c", 5),
            ("/%EA%B5%AC%EA%B8%80", 6),
            ("/%F0%9F%9A%80", 4),
            ("/%C3%B6", 2),
            ("/o%CC%88", 2),
            ("/ö", 2),
            ("/setup.sh", 8),
            ("/photo.png", 9),
            ("/v1.2", 4),
            ("/v1%2E2", 4),
            ("/api", 3),
            ("/health", 6),
            ("/v1/links", 8),
            ("/metrics", 7),
            ("/a+b", 3),
            ("/1&x=y", 5),
        ] {
            let location = format!("https://example.com/{length}");
            assert_eq!(server.get(path).await.redirect(), (302, Some(location.as_str())), "{path}");
        }
        // Decoded once, and only once.
        for path in
            ["/%2561", "/%25F0%259F%259A%2580", "/a%20b", "/%ff", "/..%2f..", "/%00", "/healthz", "/readyz"]
        {
            assert_eq!(server.get(path).await.status, 404, "{path}");
        }
        server.stop().await;
    }
);

db::on_both!(
    a4_51_55_56_57_59_the_location_is_the_destination_byte_for_byte,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let of = |length: usize| format!("https://example.com/{}", "x".repeat(length - 20));
        let cases = [
            ("https://example.com/?abc#123".to_owned(), None),
            ("https://example.com/%C3%BC?q=%25".into(), None),
            ("https://example.com/ü?q=%25".into(), Some("https://example.com/%C3%BC?q=%25")),
            ("https://example.com/a|b{c}\"<>`\\^".into(), None),
            ("http://tübingen.example/".into(), Some("http://xn--tbingen-n2a.example/")),
            ("https://example.com/产品".into(), Some("https://example.com/%E4%BA%A7%E5%93%81")),
            ("https://example.com/a b".into(), Some("https://example.com/a%20b")),
            ("HTTPS://Example.COM/TeSt".into(), None),
            ("com.example.app://open?x=1".into(), None),
            ("mailto:a@example.com".into(), None),
            ("tel:+100".into(), None),
            (of(2_049), None),
            (of(8_192), None),
            (of(32_000), None),
        ];
        for (place, (destination, location)) in cases.into_iter().enumerate() {
            server.link(&format!("s{place}"), &destination).await;
            let expected = location.unwrap_or(destination.as_str());
            for _ in 0..2 {
                assert_eq!(
                    server.get(&format!("/s{place}")).await.redirect(),
                    (302, Some(expected)),
                    "{destination:.60}"
                );
            }
        }
        server.stop().await;
    }
);

db::on_both!(
    a4_60_a_destination_that_runs_something_is_not_sent_however_it_got_in,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        server.link("bad", "https://example.com/").await;
        let mut tx = database.begin().await.unwrap();
        const SQL: &str = "UPDATE links SET destination = 'javascript:alert(1)'";
        match tx.conn() {
            db::Conn::Sqlite(conn) => drop(sqlx::query(SQL).execute(conn).await.unwrap()),
            db::Conn::Postgres(pg) => drop(pg.query(SQL).execute(&mut *pg.conn).await.unwrap()),
        }
        tx.commit().await.unwrap();
        for _ in 0..2 {
            assert_eq!(server.get("/bad").await.redirect(), (404, None));
        }
        server.stop().await;
    }
);

db::on_both!(
    a5_66_the_visitors_query_is_merged_and_another_path_is_another_slug,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        server.link("a", "https://example.com/?a=1").await;
        server.link("f", "https://example.com/?abc#123").await;
        server.link("t", "tel:+100").await;
        for (path, location) in [
            ("/a?utm=x", "https://example.com/?a=1&utm=x"),
            ("/a?a=2", "https://example.com/?a=2"),
            ("/a?", "https://example.com/?a=1"),
            ("/a/?utm=x", "https://example.com/?a=1&utm=x"),
            ("/f?utm=x", "https://example.com/?abc&utm=x#123"),
            ("/f", "https://example.com/?abc#123"),
            ("/t?utm=x", "tel:+100"),
        ] {
            assert_eq!(server.get(path).await.redirect(), (302, Some(location)), "{path}");
        }
        assert_eq!(server.get("/a&utm=x").await.redirect(), (404, None));
        server.stop().await;
    }
);

db::on_both!(
    a5_68_a_link_that_passes_no_query_through_forwards_nothing,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        server.link_with("a", "https://example.com/?a=1", |content| content.query_passthrough = false).await;
        assert_eq!(server.get("/a?utm=x&a=2").await.location(), Some("https://example.com/?a=1"));
        server.stop().await;
    }
);

db::on_both!(
    a5_69_71_72_an_expired_link_ends_at_once_also_in_the_cache,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let expiry = db::Timestamp::parse_rfc3339("2026-03-01T10:00:01+03:00");
        server.link_with("a", "https://example.com/", |content| content.expires_at = expiry).await;
        server
            .link_with("b", "https://example.com/", |content| {
                content.expires_at = expiry;
                content.redirect_code = Some(RedirectCode::MovedPermanently);
                content.expired_url = Some(Destination::new("https://example.com/over").unwrap());
            })
            .await;
        assert_eq!(server.get("/a").await.status, 302);
        let permanent = server.get("/b").await;
        assert_eq!((permanent.status, permanent.header("cache-control")), (301, Some("private, no-store")));
        server.clock.advance(Duration::from_secs(1));
        assert_eq!(server.get("/a").await.redirect(), (410, None));
        let over = server.get("/b").await;
        assert_eq!(over.redirect(), (302, Some("https://example.com/over")));
        assert_eq!(over.header("cache-control"), Some("private, no-store"));
        server.stop().await;
    }
);

db::on_both!(
    an_expired_link_without_a_place_of_its_own_goes_where_the_domain_says,
    [&links::ROOM],
    |database: db::Database| async move {
        let settings = DomainSettings {
            expired_url: Some(Destination::new("https://example.com/expired").unwrap()),
            ..DomainSettings::default()
        };
        let server = Server::with(database, settings, |_| {}).await;
        let past = Some(db::Timestamp::from_micros(0));
        server.link_with("a", "https://example.com/", |content| content.expires_at = past).await;
        assert_eq!(server.get("/a").await.redirect(), (302, Some("https://example.com/expired")));
        server.stop().await;
    }
);

db::on_both!(
    a5_74_75_the_code_is_the_links_or_the_domains_and_302_is_kept_by_nobody,
    [&links::ROOM],
    |database: db::Database| async move {
        let settings = DomainSettings {
            default_redirect_code: RedirectCode::TemporaryRedirect,
            ..DomainSettings::default()
        };
        let server = Server::with(database, settings, |_| {}).await;
        server.link("default", "https://example.com/").await;
        for (slug, code) in [
            ("moved", RedirectCode::MovedPermanently),
            ("found", RedirectCode::Found),
            ("permanent", RedirectCode::PermanentRedirect),
        ] {
            server
                .link_with(slug, "https://example.com/", |content| content.redirect_code = Some(code))
                .await;
        }
        for (path, status, caching) in [
            ("/default", 307, "private, no-store"),
            ("/moved", 301, "private, max-age=90"),
            ("/found", 302, "private, no-store"),
            ("/permanent", 308, "private, max-age=90"),
        ] {
            let answer = server.get(path).await;
            assert_eq!((answer.status, answer.header("cache-control")), (status, Some(caching)), "{path}");
        }
        server.stop().await;
    }
);

db::on_both!(
    a5_78_head_is_answered_like_get_and_other_methods_are_not,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let link = server.link("a", "https://example.com/").await;
        let head = server.ask("HEAD", HOST, "/a").await;
        assert_eq!((head.redirect(), head.body.as_str()), ((302, Some("https://example.com/")), ""));
        assert_eq!(server.ask("HEAD", HOST, "/none").await.status, 404);
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"] {
            let answer = server.ask(method, HOST, "/a").await;
            assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method}");
        }
        server.stop().await;
        assert_eq!(Server::clicks(&database, link.id).await, links::Count::default());
    }
);

db::on_both!(
    a5_79_a_link_behind_a_password_stays_closed,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let link = server
            .link_with("a", "https://secret.example/", |content| content.password_protected = true)
            .await;
        for _ in 0..2 {
            let answer = server.get("/a").await;
            assert_eq!(answer.redirect(), (403, None));
            assert!(!answer.body.contains("secret"));
        }
        server.stop().await;
        assert_eq!(Server::clicks(&database, link.id).await, links::Count::default());
    }
);

db::on_both!(
    archived_links_redirect_and_disabled_ones_do_not_exist,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        server.link_with("archived", "https://example.com/", |content| content.archived = true).await;
        server.link_with("disabled", "https://example.com/", |content| content.enabled = false).await;
        for _ in 0..2 {
            assert_eq!(server.get("/archived").await.redirect(), (302, Some("https://example.com/")));
            assert_eq!(server.get("/disabled").await.redirect(), (404, None));
        }
        server.stop().await;
    }
);

db::on_both!(
    an_unknown_slug_goes_to_the_domains_fallback_or_nowhere,
    [&links::ROOM],
    |database: db::Database| async move {
        let settings = DomainSettings {
            fallback_url: Some(Fallback::new("https://old.example.com/{slug}?by=404").unwrap()),
            root_redirect: Some(Destination::new("https://www.example.com/").unwrap()),
            default_redirect_code: RedirectCode::MovedPermanently,
            ..DomainSettings::default()
        };
        let server = Server::with(database, settings, |_| {}).await;
        for (path, location) in [
            ("/none", Some("https://old.example.com/none?by=404")),
            ("/a/b%3Fc", Some("https://old.example.com/a/b%3Fc?by=404")),
            ("/%F0%9F%9A%80", Some("https://old.example.com/%F0%9F%9A%80?by=404")),
            ("/", Some("https://www.example.com/")),
            ("/robots.txt", None),
            ("/favicon.ico", None),
            ("/.well-known/acme-challenge/x", None),
        ] {
            for _ in 0..2 {
                let answer = server.get(path).await;
                assert_eq!(
                    answer.redirect(),
                    (if location.is_some() { 302 } else { 404 }, location),
                    "{path}"
                );
                assert_eq!(answer.header("cache-control"), Some("private, no-store"), "{path}");
            }
        }
        server.stop().await;
    }
);

db::on_both!(
    a1_7_a_host_never_gets_another_domains_link,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let mut tx = database.begin().await.unwrap();
        let other = Host::new("other.example.com").unwrap();
        let settings = DomainSettings::default();
        let domain =
            links::add_domain(&mut tx, server.workspace, &other, &settings, server.domain.created_at)
                .await
                .unwrap();
        tx.commit().await.unwrap();
        server.redirects.domains_changed().await.unwrap();
        server.link("x", "https://one.example/").await;
        let second = Server { domain, ..server };
        second.link("x", "https://two.example/").await;
        assert_eq!(second.get("/x").await.location(), Some("https://one.example/"));
        assert_eq!(
            second.ask("GET", "other.example.com", "/x").await.location(),
            Some("https://two.example/")
        );
        for host in ["OTHER.example.com", "other.example.com:8443", "other.example.com."] {
            assert_eq!(
                second.ask("GET", host, "/x").await.location(),
                Some("https://two.example/"),
                "{host}"
            );
        }
        for host in ["c.example.com", "192.0.2.1", "example.com"] {
            let answer = second.ask("GET", host, "/x").await;
            assert_eq!(answer.redirect(), (404, None), "{host}");
        }
        let absolute =
            b"GET http://other.example.com/x HTTP/1.1\r\nHost: go.example.com\r\nConnection: close\r\n\r\n";
        assert!(raw(second.address, absolute).await.contains("https://two.example/"));
        for head in
            ["GET /x HTTP/1.1\r\n", "GET /x HTTP/1.1\r\nHost: go.example.com\r\nHost: other.example.com\r\n"]
        {
            let answer = raw(second.address, format!("{head}Connection: close\r\n\r\n").as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        }
        second.stop().await;
    }
);

db::on_both!(
    a3_49_the_api_does_not_answer_on_a_link_domain,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        for path in ["/v1/links", "/metrics", "/healthz", "/readyz", "/errors/not_found", "/style.css"] {
            let answer = server.get(path).await;
            assert_eq!((answer.status, answer.body.as_str()), (404, "There is no such link.\n"), "{path}");
        }
        server.stop().await;
    }
);
