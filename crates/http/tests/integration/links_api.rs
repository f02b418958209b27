//! `/v1/links` and `/v1/domains`.

use db::Timestamp;
use links::{Name, Scope};
use serde_json::json;

use crate::client::send;
use crate::server::{START, Server, token};

db::on_both!(
    a_link_is_created_read_changed_and_deleted,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let body = json!({
            "destination_url": "https://example.com/?abc#123",
            "slug": "a/b",
            "domain": "https://GO.example.com/",
            "title": "Überschrift",
            "tags": ["mail", "q1"],
            "folder": "Spring",
            "redirect_code": 301,
            "expires_at": "2026-04-01T10:00:00+03:00",
            "geo": {"de": "https://example.de/ü", "AT": "market://details?id=x"},
            "utm": {"source": "mail"},
            "external_id": "order-1",
        });
        let created = server.api("POST", "/v1/links", &body.to_string()).await;
        let link = created.json();
        assert_eq!(created.status, 201, "{link}");
        let path = format!("/v1/links/{}", link["id"].as_str().unwrap());
        assert_eq!(created.header("location"), Some(path.as_str()));
        assert_eq!(created.header("etag"), Some("\"1\""));
        for (field, value) in [
            ("destination_url", json!("https://example.com/?abc#123")),
            ("domain", json!("go.example.com")),
            ("slug", json!("a/b")),
            ("short_url", json!("https://go.example.com/a/b")),
            ("title", json!("Überschrift")),
            ("tags", json!(["mail", "q1"])),
            ("folder", json!("Spring")),
            ("redirect_code", json!(301)),
            ("query_passthrough", json!(true)),
            ("enabled", json!(true)),
            ("expires_at", json!("2026-04-01T07:00:00Z")),
            ("geo", json!({"AT": "market://details?id=x", "DE": "https://example.de/ü"})),
            ("utm", json!({"source": "mail"})),
            ("external_id", json!("order-1")),
            ("clicks", json!({"humans": 0, "bots": 0, "imported": null})),
            ("version", json!(1)),
        ] {
            assert_eq!(link[field], value, "{field}");
        }
        assert_eq!(server.api("GET", &path, "").await.json(), link);

        let changed = server.api("PATCH", &path, r#"{"title":null,"tags":["x"],"archived":true}"#).await;
        let after = changed.json();
        assert_eq!((changed.status, changed.header("etag")), (200, Some("\"2\"")), "{after}");
        assert_eq!(
            (&after["title"], &after["tags"], &after["archived"]),
            (&json!(null), &json!(["x"]), &json!(true))
        );
        assert_eq!(after["folder"], "Spring");

        assert_eq!(server.api("DELETE", &path, "").await.status, 204);
        for method in ["GET", "DELETE"] {
            assert_eq!(server.api(method, &path, "").await.status, 404, "{method}");
        }
        server.stop().await;
    }
);

db::on_both!(
    a_stale_version_is_refused_and_the_current_one_named,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let link = server.link("a", "https://example.com/").await;
        let path = format!("/v1/links/{}", link.id);
        assert_eq!(server.api("PATCH", &path, r#"{"title":"one","version":1}"#).await.status, 200);
        for (body, headers) in
            [(r#"{"title":"two","version":1}"#, &[][..]), (r#"{"title":"two"}"#, &[("If-Match", "\"1\"")])]
        {
            let refused = server.api_with("PATCH", &path, body, headers).await;
            let problem = refused.json();
            assert_eq!((refused.status, problem["code"].as_str()), (409, Some("stale_version")));
            assert_eq!((&problem["version"], &problem["current_version"]), (&json!(1), &json!(2)));
        }
        assert_eq!(server.api_with("DELETE", &path, "", &[("If-Match", "\"1\"")]).await.status, 409);
        assert_eq!(server.api("PATCH", &path, r#"{"title":"three"}"#).await.status, 200);
        assert_eq!(server.api_with("DELETE", &path, "", &[("If-Match", "\"3\"")]).await.status, 204);
        server.stop().await;
    }
);

db::on_both!(a_bad_body_is_told_field_by_field, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database).await;
    for (body, code, pointers) in [
        ("", "unsupported_media_type", &[][..]),
        ("{", "invalid_json", &[]),
        (
            r#"{"destination_url":"https://example.com/","destinationUrl":"x"}"#,
            "validation_failed",
            &["/destinationUrl"],
        ),
        (r#"{"slug":"a"}"#, "validation_failed", &["/destination_url"]),
        (r#"{"destination_url":5}"#, "validation_failed", &["/destination_url"]),
        (
            r#"{"destination_url":"javascript:alert(1)","slug":"a?b","tags":["ok"," "],"redirect_code":303}"#,
            "validation_failed",
            &["/destination_url", "/redirect_code", "/slug", "/tags/1"],
        ),
        (
            r#"{"destination_url":"https://example.com/","slug":"robots.txt"}"#,
            "validation_failed",
            &["/slug"],
        ),
        (
            r#"{"destination_url":"https://example.com/","domain":"none.example.com"}"#,
            "validation_failed",
            &["/domain"],
        ),
        (
            r#"{"destination_url":"https://go.example.com/a","slug":"a"}"#,
            "validation_failed",
            &["/destination_url"],
        ),
        (
            r#"{"destination_url":"https://example.com/","expires_at":"2 days"}"#,
            "validation_failed",
            &["/expires_at"],
        ),
        (
            r#"{"destination_url":"https://example.com/","base_url":"https://x.example/"}"#,
            "validation_failed",
            &["/base_url"],
        ),
    ] {
        let answer = server.api("POST", "/v1/links", body).await;
        let problem = answer.json();
        assert_eq!(problem["code"].as_str(), Some(code), "{body}: {problem}");
        assert_eq!(answer.status, if body.is_empty() { 415 } else { 400 }, "{body}");
        let mut found: Vec<&str> = problem["errors"]
            .as_array()
            .map(|errors| errors.iter().filter_map(|error| error["pointer"].as_str()).collect())
            .unwrap_or_default();
        found.sort_unstable();
        assert_eq!(found, pointers, "{body}: {problem}");
    }
    server.stop().await;
});

db::on_both!(
    a4_60_a_countrys_destination_is_under_the_rules_of_every_destination,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let link = server.link("a", "https://example.com/").await;
        let path = format!("/v1/links/{}", link.id);
        for (geo, pointers) in [
            (json!({"DE": "javascript:alert(1)"}), &["/geo/DE"][..]),
            (
                json!({"DE": "JAVA\tSCRIPT:alert(1)", "AT": "", "CH": "https://example.ch/"}),
                &["/geo/AT", "/geo/DE"],
            ),
            (json!({"DEU": "https://example.de/"}), &["/geo/DEU"]),
            (json!({"a/b~": "https://example.de/"}), &["/geo/a~1b~0"]),
            (json!({"DE": "https://example.de/", "de": "https://example.de/"}), &["/geo/de"]),
        ] {
            let create = json!({"destination_url": "https://example.com/", "geo": geo}).to_string();
            let change = json!({"geo": geo}).to_string();
            for (method, path, body) in [("POST", "/v1/links", create), ("PATCH", path.as_str(), change)] {
                let refused = server.api(method, path, &body).await;
                let problem = refused.json();
                let found: Vec<&str> = problem["errors"]
                    .as_array()
                    .map(|errors| errors.iter().filter_map(|error| error["pointer"].as_str()).collect())
                    .unwrap_or_default();
                assert_eq!((refused.status, found.as_slice()), (400, pointers), "{method} {body}: {problem}");
            }
        }
        let body = r#"{"geo":{"DE":"javascript:alert(1)"}}"#;
        let problem = server.api("PATCH", &path, body).await.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("geo.DE: 'javascript:alert(1)'"), "{detail}");
        assert_eq!(server.api("GET", &path, "").await.json()["geo"], json!(null));
        let body = r#"{"geo":{"DE":"https://example.de/"}}"#;
        let changed = server.api("PATCH", &path, body).await.json();
        assert_eq!(changed["geo"], json!({"DE": "https://example.de/"}));
        assert_eq!(server.api("PATCH", &path, r#"{"geo":null}"#).await.json()["geo"], json!(null));
        server.stop().await;
    }
);

db::on_both!(
    a_taken_slug_is_a_conflict_and_a_random_one_is_found,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let link = server.link("a", "https://example.com/").await;
        let refused =
            server.api("POST", "/v1/links", r#"{"destination_url":"https://example.com/","slug":"a"}"#).await;
        let problem = refused.json();
        assert_eq!((refused.status, problem["code"].as_str()), (409, Some("slug_conflict")));
        assert_eq!(problem["conflicting_link"].as_str(), Some(link.id.to_string().as_str()));
        let created = server.api("POST", "/v1/links", r#"{"destination_url":"https://example.com/"}"#).await;
        assert_eq!(created.status, 201);
        assert!(created.json()["slug"].as_str().is_some_and(|slug| slug.len() >= 7));
        server.stop().await;
    }
);

db::on_both!(
    a_list_pages_to_its_end_and_is_found_by_slug,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        for slug in ["a", "b", "c/d", "e", "f"] {
            server.link(slug, "https://example.com/").await;
        }
        let mut seen = Vec::new();
        let mut path = "/v1/links?limit=2".to_owned();
        loop {
            let page = server.api("GET", &path, "").await.json();
            seen.extend(
                page["data"].as_array().unwrap().iter().map(|link| link["slug"].as_str().unwrap().to_owned()),
            );
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/links?limit=2&cursor={cursor}");
        }
        assert_eq!(seen, ["f", "e", "c/d", "b", "a"]);
        let found = server.api("GET", "/v1/links?domain=go.example.com&slug=c%2Fd", "").await.json();
        assert_eq!(found["data"][0]["slug"], "c/d");
        for query in ["limit=0", "limit=201", "limit=x", "cursor=zzz", "state=gone", "unknown=1", "slug=a"] {
            let answer = server.api("GET", &format!("/v1/links?{query}"), "").await;
            assert_eq!(
                (answer.status, answer.json()["code"].as_str()),
                (400, Some("validation_failed")),
                "{query}"
            );
        }
        server.stop().await;
    }
);

db::on_both!(
    a_token_is_needed_and_its_scope_and_workspace_are_its_limits,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let link = server.link("a", "https://example.com/").await;
        let path = format!("/v1/links/{}", link.id);
        let ask = async |token: Option<&str>, method: &str, path: &str, body: &str| {
            let authorization = format!("Bearer {}", token.unwrap_or_default());
            let mut headers = vec![("Host", "localhost"), ("Content-Type", "application/json")];
            if token.is_some() {
                headers.push(("Authorization", authorization.as_str()));
            }
            send(server.address, method, path, &headers, body).await
        };
        let unknown = "cdk_".to_owned() + &"0".repeat(39);
        for token in [None, Some(""), Some("nonsense"), Some(unknown.as_str())] {
            let answer = ask(token, "GET", &path, "").await;
            assert_eq!(
                (answer.status, answer.json()["code"].as_str()),
                (401, Some("unauthenticated")),
                "{token:?}"
            );
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
        let reader = token(&database, server.workspace, &[Scope::LinksRead]).await;
        assert_eq!(ask(Some(&reader), "GET", &path, "").await.status, 200);
        for (method, path, body, scope) in [
            ("PATCH", path.as_str(), "{}", "links:write"),
            ("POST", "/v1/links", "not even JSON", "links:write"),
            ("GET", "/v1/domains", "", "domains:*"),
        ] {
            let answer = ask(Some(&reader), method, path, body).await;
            let problem = answer.json();
            assert_eq!(
                (answer.status, problem["code"].as_str()),
                (403, Some("missing_scope")),
                "{method} {path}"
            );
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(scope)), "{problem}");
        }
        let mut tx = database.begin().await.unwrap();
        let name = Name::new("other").unwrap();
        let (other, _) =
            links::ensure_workspace(&mut tx, &name, Timestamp::from_micros(START)).await.unwrap();
        tx.commit().await.unwrap();
        let stranger = token(&database, other.id, &Scope::ALL).await;
        for (method, body) in [("GET", ""), ("PATCH", "{}"), ("DELETE", "")] {
            let answer = ask(Some(&stranger), method, &path, body).await;
            assert_eq!((answer.status, answer.json()["code"].as_str()), (404, Some("not_found")), "{method}");
        }
        let listed = ask(Some(&stranger), "GET", "/v1/links?domain=go.example.com", "").await.json();
        assert_eq!(listed["data"], json!([]));
        let body = r#"{"destination_url":"https://example.com/","domain":"go.example.com"}"#;
        assert_eq!(ask(Some(&stranger), "POST", "/v1/links", body).await.status, 400);
        server.stop().await;
    }
);

db::on_both!(a_domain_is_added_and_served_at_once, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database).await;
    let body = json!({
        "host": "https://New.example.com/",
        "case_mode": "insensitive",
        "root_redirect": "https://www.example.com/",
        "fallback_url": "https://old.example.com/{slug}",
        "default_redirect_code": 307,
    });
    let created = server.api("POST", "/v1/domains", &body.to_string()).await;
    let domain = created.json();
    assert_eq!((created.status, domain["host"].as_str()), (201, Some("new.example.com")), "{domain}");
    assert_eq!(
        server.ask("GET", "new.example.com", "/x").await.location(),
        Some("https://old.example.com/x")
    );
    let listed = server.api("GET", "/v1/domains", "").await.json();
    let hosts: Vec<&str> =
        listed["data"].as_array().unwrap().iter().filter_map(|d| d["host"].as_str()).collect();
    assert_eq!(hosts, ["go.example.com", "new.example.com"]);
    let again = server.api("POST", "/v1/domains", &body.to_string()).await;
    assert_eq!((again.status, again.json()["code"].as_str()), (409, Some("domain_conflict")));
    for (body, pointer) in [
        (json!({"host": "admin.example.com"}), "/host"),
        (json!({"host": "not a host"}), "/host"),
        (json!({"host": "x.example.com", "case_mode": "loud"}), "/case_mode"),
        (json!({"host": "x.example.com", "root_redirect": "javascript:x"}), "/root_redirect"),
        (json!({"host": "x.example.com", "fallback_url": "{slug}"}), "/fallback_url"),
    ] {
        let answer = server.api("POST", "/v1/domains", &body.to_string()).await;
        assert_eq!(
            (answer.status, answer.json()["errors"][0]["pointer"].as_str()),
            (400, Some(pointer)),
            "{body}"
        );
    }
    server.stop().await;
});

db::on_both!(
    a4_57_the_longest_destination_is_a_setting,
    [&links::ROOM],
    |database: db::Database| async move {
        let of = |length: usize| format!("https://example.com/{}", "x".repeat(length - 20));
        let adjust = |options: &mut crossdock_http::ServerOptions| options.destination_length_max = 33_000;
        let server = Server::with(database, links::DomainSettings::default(), adjust).await;
        let body = |slug: &str, length: usize| {
            serde_json::json!({"slug": slug, "destination_url": of(length), "ios_url": of(length), "geo": {"DE": of(length)}})
            .to_string()
        };
        let made = server.api("POST", "/v1/links", &body("long", 33_000)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        assert_eq!(server.get("/long").await.location(), Some(of(33_000).as_str()), "it is returned whole");
        let refused = server.api("POST", "/v1/links", &body("longer", 33_001)).await.json();
        let pointers: Vec<&str> = refused["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["pointer"].as_str().unwrap())
            .collect();
        assert_eq!(pointers, ["/destination_url", "/ios_url", "/geo/DE"]);
        server.stop().await;
    }
);
