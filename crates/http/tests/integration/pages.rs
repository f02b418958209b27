//! The plain pages.

use crate::server::Server;

db::on_both!(pages_are_plain_and_allow_nothing_to_run, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database).await;
    for (path, words) in [
        ("/", "bearer token"),
        ("/migrate-from/bitly", "Click history"),
        ("/errors/slug_conflict", "Another link of the domain has this slug"),
    ] {
        let answer = server.ask("GET", "localhost", path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(
            answer.header("content-security-policy").unwrap().starts_with("default-src 'none'"),
            "{path}"
        );
        assert!(answer.body.contains(words) && !answer.body.contains("<script"), "{path}: {}", answer.body);
    }
    for path in ["/migrate-from/nobody", "/errors/%3Cscript%3E"] {
        let answer = server.ask("GET", "localhost", path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (404, Some("text/html; charset=utf-8")),
            "{path}"
        );
        assert!(!answer.body.contains("<script"));
    }
    assert_eq!(
        server.ask("GET", "localhost", "/style.css").await.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    server.stop().await;
});
