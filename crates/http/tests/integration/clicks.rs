//! Counting.

use links::Count;

use crate::client::send;
use crate::server::{HOST, Server};

db::on_both!(clicks_are_written_when_the_server_stops, [&links::ROOM], |database: db::Database| async move {
    let server = Server::start(database.clone()).await;
    let link = server.link("a", "https://example.com/").await;
    for _ in 0..7 {
        assert_eq!(server.get("/a").await.status, 302);
    }
    assert_eq!(server.get("/none").await.status, 404);
    server.stop().await;
    assert_eq!(Server::clicks(&database, link.id).await, Count { humans: 7, bots: 0 });
});

db::on_both!(
    a5_77_previews_are_redirected_and_counted_apart,
    [&links::ROOM],
    |database: db::Database| async move {
        let server = Server::start(database.clone()).await;
        let link = server.link("a", "https://example.com/").await;
        let browser = "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0";
        for agent in ["Twitterbot/1.0", browser, "http.rb/5.1.1 (Mastodon/4.2.0; +https://mastodon.example/)"]
        {
            let answer =
                send(server.address, "GET", "/a", &[("Host", HOST), ("User-Agent", agent)], "").await;
            assert_eq!(answer.redirect(), (302, Some("https://example.com/")), "{agent}");
        }
        for (name, value) in
            [("Sec-Purpose", "prefetch;prerender"), ("Purpose", "prefetch"), ("X-Moz", "prefetch")]
        {
            let headers = [("Host", HOST), ("User-Agent", browser), (name, value)];
            let answer = send(server.address, "GET", "/a", &headers, "").await;
            assert_eq!(answer.redirect(), (302, Some("https://example.com/")), "{name}");
        }
        server.stop().await;
        assert_eq!(Server::clicks(&database, link.id).await, Count { humans: 1, bots: 5 });
    }
);
