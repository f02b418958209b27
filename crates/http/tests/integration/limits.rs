//! What a client may not do.

use crate::client::raw;
use crate::server::Server;

db::on_both!(heads_that_are_too_large_are_refused, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database).await;
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    let long = format!("X: {}\r\n", "y".repeat(1_000_000));
    for headers in [many, long] {
        let request =
            format!("GET /a HTTP/1.1\r\nHost: go.example.com\r\nConnection: close\r\n{headers}\r\n");
        let answer = raw(server.address, request.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    assert_eq!(server.get("/none").await.status, 404);
    server.stop().await;
});

db::on_both!(a_body_over_the_limit_is_refused, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database).await;
    let body = format!(r#"{{"destination_url":"https://example.com/","notes":"{}"}}"#, "x".repeat(1 << 20));
    let answer = server.api("POST", "/v1/links", &body).await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (413, Some("body_too_large")));
    server.stop().await;
});

db::on_both!(pipelined_requests_are_answered_in_order, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database).await;
    server.link("a", "https://a.example/").await;
    server.link("b", "https://b.example/").await;
    let ask = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: go.example.com\r\n{more}\r\n");
    let request = format!("{}{}{}", ask("/a", ""), ask("/b", ""), ask("/a", "Connection: close\r\n"));
    let answers = raw(server.address, request.as_bytes()).await;
    let order: Vec<&str> = answers.lines().filter_map(|line| line.strip_prefix("location: ")).collect();
    assert_eq!(order, ["https://a.example/", "https://b.example/", "https://a.example/"]);
    server.stop().await;
});
