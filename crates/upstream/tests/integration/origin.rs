//! One origin, whatever answers say.

use crossdock_upstream::{Error, FixedHeader, HeaderValue, Request, StatusCode};

use crate::server::{Script, Server};
use crate::{builder, client, clock};

fn moved(status: &str, location: &str) -> Script {
    Script::answer(status, &[("Location", location)], "")
}

#[tokio::test]
async fn redirects_on_the_origin_are_followed_with_the_credential() {
    for status in ["301 X", "302 X", "303 X", "307 X", "308 X"] {
        let server = Server::playing(vec![moved(status, "../v5/links?a=1"), Script::ok("{}")]).await;
        let client = builder(&server.base, &clock())
            .credentials(FixedHeader::bearer("s3cr3t").unwrap())
            .build()
            .unwrap();
        let answer = client.get("links", &[]).await.unwrap();
        assert_eq!((answer.url.path(), answer.attempts), ("/v5/links", 1));
        let seen = server.seen();
        assert_eq!(seen[1].target(), "/v5/links?a=1");
        assert_eq!(seen[1].header("authorization"), Some("Bearer s3cr3t"));
        assert_eq!(seen[1].header("referer"), None);
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_or_port_is_not_followed() {
    let stranger = Server::playing(vec![Script::ok("{}")]).await;
    let server = Server::playing(vec![moved("302 X", &format!("{}/steal", stranger.base))]).await;
    let client =
        builder(&server.base, &clock()).credentials(FixedHeader::bearer("s3cr3t").unwrap()).build().unwrap();
    let error = client.get("links", &[]).await.unwrap_err();
    let Error::ForeignOrigin { ref url, ref origin } = error else { panic!("{error}") };
    assert_eq!(
        (url.as_str(), origin.as_str()),
        (format!("{}/steal", stranger.base).as_str(), &server.base[..server.base.len() - 3])
    );
    let error = client.get(&format!("{}/next", stranger.base), &[]).await.unwrap_err();
    assert!(matches!(error, Error::ForeignOrigin { .. }), "{error}");
    assert_eq!((stranger.requests(), server.requests()), (0, 1));
}

#[tokio::test]
async fn redirects_in_a_ring_end_after_five() {
    let server = Server::playing(vec![moved("302 X", "/v4/links")]).await;
    let error = client(&server.base, &clock()).get("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::TooManyRedirects { limit: 5, .. }), "{error}");
    assert_eq!(server.requests(), 6);
    assert!(!error.is_temporary());
}

#[tokio::test]
async fn a_redirect_without_a_place_is_a_refusal() {
    let server = Server::playing(vec![Script::answer("302 X", &[], "")]).await;
    let error = client(&server.base, &clock()).get("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Status { status: StatusCode::FOUND, .. }), "{error}");
}

#[tokio::test]
async fn next_links_are_read_against_the_answer_that_holds_them() {
    let server = Server::playing(vec![moved("302 X", "/v9/deep/links"), Script::ok("{}")]).await;
    let client = client(&server.base, &clock());
    let first = client.get("links", &[]).await.unwrap();
    client.send(Request::get("?page=2").relative_to(&first.url)).await.unwrap();
    client.send(Request::get(format!("{}/links?page=3", server.base)).query([("size", "9")])).await.unwrap();
    client.send(Request::get("http://127.0.0.1/v4/lost-port")).await.unwrap();
    let targets: Vec<String> = server.seen().iter().map(|seen| seen.target().to_owned()).collect();
    assert_eq!(
        targets,
        ["/v4/links", "/v9/deep/links", "/v9/deep/links?page=2", "/v4/links?page=3&size=9", "/v4/lost-port"]
    );
}

#[tokio::test]
async fn a_request_may_carry_headers_of_its_own() {
    let server = Server::playing(vec![Script::ok("{}")]).await;
    let request = Request::get("links").header("workspace".parse().unwrap(), HeaderValue::from_static("w1"));
    client(&server.base, &clock()).send(request).await.unwrap();
    assert_eq!(server.seen()[0].header("workspace"), Some("w1"));
}
