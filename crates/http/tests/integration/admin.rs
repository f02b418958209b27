//! What answers on the admin hosts besides the API's resources.

use crate::client::send;
use crate::server::Server;

db::on_both!(
    health_metrics_and_errors_answer_on_the_admin_hosts,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database).await;
        server.imported_link("a", "https://example.com/").await;
        server.get("/a").await;
        server.get("/a").await;
        for host in ["localhost", "127.0.0.1", "admin.example.com", "Admin.Example.com:443"] {
            assert_eq!(server.ask("GET", host, "/healthz").await.body, "ok\n", "{host}");
            assert_eq!(server.ask("GET", host, "/readyz").await.body, "ready\n", "{host}");
        }
        let metrics = server.metrics().await;
        for line in [
            r#"crossdock_redirects_total{status="302"} 2"#,
            "crossdock_redirect_cache_hits_total 1",
            "crossdock_redirect_cache_misses_total 1",
            r#"crossdock_clicks_total{kind="human"} 2"#,
            "crossdock_clicks_dropped_total 0",
            r#"crossdock_http_requests_total{route="/healthz",method="GET",status="200"} 4"#,
        ] {
            assert!(metrics.contains(line), "{line}\n{metrics}");
        }
        server.stop().await;
    }
);

db::on_both!(
    with_an_admin_host_only_it_and_this_machine_reach_the_api,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::with(database, links::DomainSettings::default(), |options| {
            options.admin_host = Some(links::Host::new("ops.example.com").unwrap());
            options.trusted_proxies =
                crossdock_http::TrustedProxies::new(vec!["127.0.0.0/8".parse().unwrap()]);
        })
        .await;
        assert_eq!(server.ask("GET", "ops.example.com", "/healthz").await.status, 200);
        assert_eq!(server.ask("GET", "localhost", "/healthz").await.status, 200);
        let forwarded = [("Host", "localhost"), ("X-Forwarded-For", "192.0.2.1")];
        assert_eq!(send(server.address, "GET", "/healthz", &forwarded, "").await.status, 404);
        server.stop().await;
    }
);

db::on_both!(errors_of_the_router_are_problems_too, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database).await;
    for (method, path, status, code) in [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/links/not-an-id", 404, "not_found"),
        ("PUT", "/v1/links", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
    ] {
        let answer = server.api(method, path, "").await;
        let body = answer.json();
        assert_eq!((answer.status, body["code"].as_str()), (status, Some(code)), "{method} {path}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(body["type"], format!("https://admin.example.com/errors/{code}"));
        assert_eq!(body["status"], status);
        assert_eq!(body["request_id"].as_str(), answer.header("x-request-id"));
        if status == 405 {
            assert!(answer.header("allow").is_some_and(|methods| methods.contains("GET")), "{answer:?}");
        }
    }
    server.stop().await;
});
