//! `/v1/imports` and the progress page.

use std::time::Duration;

use links::Scope;
use serde_json::json;

use crate::client::send;
use crate::server::{Server, token};
use crate::vendor::TOKEN;

fn start() -> String {
    json!({"vendor": "test", "token": TOKEN, "conflict": "suffix"}).to_string()
}

db::on_both!(
    an_import_runs_to_its_end_and_its_page_tells,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        assert_eq!(server.get("/one").await.status, 404);
        let started = server.api("POST", "/v1/imports", &start()).await;
        let import = started.json();
        assert_eq!((started.status, import["status"].as_str()), (202, Some("queued")), "{import}");
        let path = started.header("location").unwrap().to_owned();
        let page = import["page_url"]
            .as_str()
            .unwrap()
            .strip_prefix("https://admin.example.com")
            .unwrap()
            .to_owned();
        let queued = server.ask("GET", "localhost", &page).await;
        assert!(queued.body.contains("http-equiv=\"refresh\""), "{}", queued.body);

        server.run_import(import["id"].as_str().unwrap().parse().unwrap()).await;

        let done = server.api("GET", &path, "").await.json();
        for (field, value) in [
            ("status", json!("completed")),
            ("outcome", json!("partial")),
            ("source_links", json!(3)),
            ("imported", json!(2)),
            ("failed", json!(1)),
            ("domain", json!("go.example.com")),
            ("conflict", json!("suffix")),
        ] {
            assert_eq!(done[field], value, "{field}: {done}");
        }
        assert_eq!(done["error_log"][0]["reason"], "missing_destination");
        assert_eq!(done["history"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            server.get("/one").await.location(),
            Some("https://one.example/"),
            "the absence was forgotten"
        );
        assert_eq!(server.get("/three").await.location(), Some("https://three.example/"));

        let shown = server.ask("GET", "localhost", &page).await;
        assert_eq!((shown.status, shown.header("content-type")), (200, Some("text/html; charset=utf-8")));
        for words in [
            "Import from test to go.example.com",
            "completed, with failed records",
            "Click history stays &lt;there&gt;.",
            "&lt;b&gt;two&lt;/b&gt;",
            "missing_destination",
            "3 of 3",
        ] {
            assert!(shown.body.contains(words), "{words}\n{}", shown.body);
        }
        assert!(!shown.body.contains("<b>") && !shown.body.contains("refresh"), "{}", shown.body);
        assert!(!shown.body.contains(TOKEN));

        let verified = server.api("POST", &format!("{path}/verify"), "").await.json();
        assert_eq!((&verified["holds"], &verified["verified"]), (&json!(true), &json!(2)), "{verified}");
        let again = server.api("POST", &format!("{path}/pause"), "").await;
        assert_eq!((again.status, again.json()["code"].as_str()), (409, Some("invalid_state")));
        server.stop().await;
    }
);

db::on_both!(
    an_import_is_paused_resumed_and_cancelled,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let started = server.api("POST", "/v1/imports", &start()).await;
        let path = started.header("location").unwrap().to_owned();
        for (step, body, status) in [
            ("pause", "", "paused"),
            ("pause", "{}", "paused"),
            ("resume", "", "queued"),
            ("pause", "", "paused"),
            ("resume", r#"{"token":"another"}"#, "queued"),
            ("cancel", "", "cancelled"),
        ] {
            let answer = server.api("POST", &format!("{path}/{step}"), body).await;
            assert_eq!(
                (answer.status, answer.json()["status"].as_str()),
                (200, Some(status)),
                "{step}: {}",
                answer.body
            );
        }
        let refused = server.api("POST", &format!("{path}/resume"), "").await;
        assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("invalid_state")));

        server.api("POST", "/v1/imports", &start()).await;
        let first = server.api("GET", "/v1/imports?limit=1", "").await.json();
        let cursor = first["next_cursor"].as_str().unwrap();
        let second = server.api("GET", &format!("/v1/imports?limit=1&cursor={cursor}"), "").await.json();
        assert_eq!(
            (&second["data"][0]["status"], &second["next_cursor"]),
            (&json!("cancelled"), &json!(null))
        );
        server.stop().await;
    }
);

db::on_both!(
    what_an_import_may_not_be_told,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let with = |more: serde_json::Value| {
            let mut body: serde_json::Value = serde_json::from_str(&start()).unwrap();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body.to_string()
        };
        for (body, pointer) in [
            (with(json!({"base_url": "http://127.0.0.1:1/"})), "/base_url"),
            (with(json!({"base_url": null})), ""),
            (with(json!({"filter": {"base_url": "http://127.0.0.1:1/"}})), "/filter/base_url"),
            (with(json!({"vendor": "nobody"})), "/vendor"),
            (with(json!({"domain": "none.example.com"})), "/domain"),
            (with(json!({"conflict": "overwrite"})), "/conflict"),
            (with(json!({"token": 12345})), "/token"),
            (with(json!({"token": " "})), "/token"),
            (
                with(json!({"filter": {"only_domain": ["ok.example.com", "not a host"]}})),
                "/filter/only_domain/1",
            ),
            (json!({"vendor": "test"}).to_string(), "/token"),
        ] {
            let answer = server.api("POST", "/v1/imports", &body).await;
            let problem = answer.json();
            if pointer.is_empty() {
                assert_eq!(answer.status, 202, "null sets nothing: {problem}");
                continue;
            }
            assert_eq!(
                (answer.status, problem["errors"][0]["pointer"].as_str()),
                (400, Some(pointer)),
                "{problem}"
            );
            assert!(!answer.body.contains(TOKEN) && !answer.body.contains("12345"), "{problem}");
        }
        server.stop().await;
    }
);

db::on_both!(
    an_import_is_its_workspaces_alone_and_its_page_needs_the_signature,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let import = server.api("POST", "/v1/imports", &start()).await.json();
        let id = import["id"].as_str().unwrap();
        let mut tx = database.begin().await.unwrap();
        let name = links::Name::new("other").unwrap();
        let (other, _) = links::ensure_workspace(&mut tx, &name, server.domain.created_at).await.unwrap();
        tx.commit().await.unwrap();
        let stranger = format!("Bearer {}", token(&database, other.id, &Scope::ALL).await);
        let reader = format!("Bearer {}", token(&database, server.workspace, &[Scope::LinksRead]).await);
        let routes = [
            ("GET", format!("/v1/imports/{id}")),
            ("POST", format!("/v1/imports/{id}/pause")),
            ("POST", format!("/v1/imports/{id}/resume")),
            ("POST", format!("/v1/imports/{id}/cancel")),
            ("POST", format!("/v1/imports/{id}/verify")),
        ];
        for (method, path) in &routes {
            for (authorization, status) in [(&stranger, 404), (&reader, 403)] {
                let headers = [("Host", "localhost"), ("Authorization", authorization.as_str())];
                assert_eq!(
                    send(server.address, method, path, &headers, "").await.status,
                    status,
                    "{method} {path}"
                );
            }
        }
        let page = import["page_url"].as_str().unwrap().strip_prefix("https://admin.example.com").unwrap();
        assert_eq!(server.ask("GET", "localhost", page).await.status, 200);
        let (path, _) = page.split_once('?').unwrap();
        for wrong in [
            path.to_owned(),
            format!("{page}0"),
            page.replace(path, "/imports/0000000000000"),
            page.replace("expires=1", "expires=2"),
        ] {
            let answer = server.ask("GET", "localhost", &wrong).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (403, Some("text/html; charset=utf-8")),
                "{wrong}"
            );
        }
        server.clock.advance(Duration::from_secs(7 * 24 * 3600));
        assert_eq!(server.ask("GET", "localhost", page).await.status, 403);
        server.stop().await;
    }
);

db::on_both!(
    a1_6_a_dry_run_shows_the_hosts_it_met_in_the_api_and_on_its_page,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let body = json!({"vendor": "test", "token": TOKEN, "dry_run": true}).to_string();
        let import = server.api("POST", "/v1/imports", &body).await.json();
        assert_eq!(import["hosts"], json!(null));
        server.run_import(import["id"].as_str().unwrap().parse().unwrap()).await;
        let done =
            server.api("GET", &format!("/v1/imports/{}", import["id"].as_str().unwrap()), "").await.json();
        let met = json!({"host": "old.example.com", "slugs": 2, "is_vendors": false, "domain": "go.example.com",
            "left_out": null});
        assert_eq!(done["hosts"], json!({"met": [met], "others": 0}));
        let page = import["page_url"].as_str().unwrap().strip_prefix("https://admin.example.com").unwrap();
        let shown = server.ask("GET", "localhost", page).await;
        assert!(shown.body.contains("old.example.com"), "{}", shown.body);
        server.stop().await;
    }
);

db::on_both!(
    a1_12_an_import_says_how_many_calls_it_needs_before_it_starts,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        let needs = "about 2 API calls (one for 2 links); 7 of 1000 are left this month";
        let asked = server.api("POST", "/v1/imports/forecast", &start()).await;
        let told = asked.json();
        assert_eq!((asked.status, told["needs"].as_str()), (200, Some(needs)), "{told}");
        assert_eq!((&told["forecast"]["calls"], &told["forecast"]["month"]["left"]), (&json!(2), &json!(7)));
        assert_eq!(told["left_behind"], json!(["Click history stays <there>."]));
        let wrong = json!({"vendor": "test", "token": "wrong"}).to_string();
        for (body, pointer, code) in [
            (wrong.clone(), "/token", "token_refused"),
            (json!({"vendor": "nobody", "token": TOKEN}).to_string(), "/vendor", "unknown_vendor"),
            (
                json!({"vendor": "test", "token": TOKEN, "domain": "no.example.com"}).to_string(),
                "/domain",
                "unknown_domain",
            ),
        ] {
            let refused = server.api("POST", "/v1/imports/forecast", &body).await;
            let error = &refused.json()["errors"][0];
            assert_eq!(
                (refused.status, &error["pointer"], &error["code"]),
                (400, &json!(pointer), &json!(code))
            );
        }
        let none = server.api("GET", "/v1/imports", "").await.json();
        assert_eq!(none["data"], json!([]), "asking starts nothing");

        let import = server.api("POST", "/v1/imports", &start()).await.json();
        assert_eq!((&import["status"], &import["forecast"]["calls"]), (&json!("queued"), &json!(2)));
        let page = import["page_url"].as_str().unwrap().strip_prefix("https://admin.example.com").unwrap();
        let shown = server.ask("GET", "localhost", page).await;
        assert!(shown.body.contains(&format!("Needs {needs}.")), "{}", shown.body);
        let read =
            server.api("GET", &format!("/v1/imports/{}", import["id"].as_str().unwrap()), "").await.json();
        assert_eq!(read["forecast"], import["forecast"], "it is kept with the import");

        let started = server.api("POST", "/v1/imports", &wrong).await;
        assert_eq!(
            (started.status, &started.json()["forecast"]),
            (202, &json!(null)),
            "the import itself says why"
        );
        server.stop().await;
    }
);
