//! A body is whole, or it is no body: cases/pipeline F 74–78 and their relatives.

use crossdock_upstream::{Broken, Error, Options, Request, StatusCode};

use crate::server::{LAST_CHUNK, Script, Server, chunks, gzip};
use crate::{builder, client, clock, impatient, in_time};

const PAGE: &str = r#"{"links":[{"id":"bit.ly/a","title":"one"},{"id":"bit.ly/b","title":"two"}],"next":""}"#;

fn gzip_headers() -> [(&'static str, &'static str); 1] {
    [("Content-Encoding", "gzip")]
}

fn chunked(headers: &[(&str, &str)], body: Vec<u8>) -> Script {
    let mut all = vec![("Transfer-Encoding", "chunked")];
    all.extend_from_slice(headers);
    Script::raw("200 OK", &all, body)
}

/// The first attempt meets `broken`, the second one the whole page; only the whole page may come out.
async fn broken_once_is_asked_again(name: &str, broken: Script, kind: Broken) {
    let server = Server::playing(vec![broken.clone(), Script::ok(PAGE)]).await;
    let clock = clock();
    let answer = client(&server.base, &clock).get("links", &[]).await.unwrap();
    assert_eq!((answer.body.as_ref(), answer.attempts), (PAGE.as_bytes(), 2), "{name}");
    assert_eq!(clock.sleeps().len(), 1, "{name}: waits before it asks again");

    let server = Server::playing(vec![broken]).await;
    let error = client(&server.base, &clock).get("links", &[]).await.unwrap_err();
    assert!(
        matches!(error, Error::Transport { kind: found, attempts: 6, .. } if found == kind),
        "{name}: {error}"
    );
    assert_eq!(server.requests(), 6, "{name}");
}

#[tokio::test]
async fn row_74_gzip_without_its_trailer_is_not_an_answer() {
    let whole = gzip(PAGE);
    for cut in [8, 4, 1] {
        let body = &whole[..whole.len() - cut];
        let script = Script::raw("200 OK", &gzip_headers(), body);
        broken_once_is_asked_again("closed behind the data", script, Broken::Encoding).await;
        let script = Script::answer("200 OK", &gzip_headers(), body);
        broken_once_is_asked_again("with a Content-Length that fits", script, Broken::Encoding).await;
    }
}

#[tokio::test]
async fn row_75_chunked_gzip_is_complete_with_its_last_chunk_and_not_without() {
    let compressed = gzip(PAGE);
    let whole = [chunks(&compressed), LAST_CHUNK.to_vec()].concat();
    let keeps_alive = [("Content-Encoding", "gzip"), ("Connection", "keep-alive")];
    for (name, script) in [
        ("closed at once", chunked(&gzip_headers(), whole.clone())),
        ("reset behind the last chunk", chunked(&gzip_headers(), whole.clone()).then_reset()),
        ("silent behind the last chunk", chunked(&keeps_alive, whole.clone()).then_silence()),
    ] {
        let server = Server::playing(vec![script]).await;
        let answer = client(&server.base, &clock()).get_json("links", &[]).await.unwrap();
        assert_eq!((answer.body.as_ref(), answer.attempts), (PAGE.as_bytes(), 1), "{name}");
    }
    for (name, body) in [
        ("no last chunk", chunks(&compressed)),
        ("half a last chunk", [chunks(&compressed), b"0\r\n".to_vec()].concat()),
        ("cut in a chunk", whole[..whole.len() / 2].to_vec()),
    ] {
        broken_once_is_asked_again(name, chunked(&gzip_headers(), body), Broken::Body).await;
    }
}

#[tokio::test]
async fn row_76_a_break_inside_the_body_is_retried_although_the_status_was_200() {
    let half = chunks(PAGE.as_bytes())[..40].to_vec();
    broken_once_is_asked_again("chunks cut", chunked(&[], half.clone()), Broken::Body).await;
    broken_once_is_asked_again("chunks cut by reset", chunked(&[], half).then_reset(), Broken::Body).await;
    let short = Script::raw("200 OK", &[("Content-Length", "5000")], PAGE);
    broken_once_is_asked_again("shorter than its Content-Length", short, Broken::Body).await;
    broken_once_is_asked_again("nothing at all", Script::bytes(""), Broken::Connection).await;
    broken_once_is_asked_again("half a head", Script::bytes("HTTP/1.1 200 OK\r\nConte"), Broken::Connection)
        .await;
    broken_once_is_asked_again("not HTTP", Script::bytes("SSH-2.0-OpenSSH_9\r\n"), Broken::Connection).await;
}

#[tokio::test]
async fn row_78_a_200_without_json_is_asked_again_and_is_never_data() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "an empty body"),
        (b" \r\n ", "an empty body"),
        (b"<html><body>502</body></html>", "a page of HTML instead of JSON"),
        (b"Service busy", "something that is not JSON"),
        (br#"{"links":[{"id":"bit.ly/a"}"#, "JSON that ends early"),
        (b"null", "something that is not JSON"),
    ];
    for (body, expected) in cases {
        let server = Server::playing(vec![Script::ok(body)]).await;
        let error = client(&server.base, &clock()).get_json("links", &[]).await.unwrap_err();
        let Error::Malformed { status: StatusCode::OK, ref problem, attempts: 6, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(problem, expected);
        assert!(error.is_temporary());
        assert_eq!(server.requests(), 6);

        let server = Server::playing(vec![Script::ok(body), Script::ok(PAGE)]).await;
        let answer = client(&server.base, &clock()).get_json("links", &[]).await.unwrap();
        assert_eq!((answer.body.as_ref(), answer.attempts), (PAGE.as_bytes(), 2));
    }
    let server = Server::playing(vec![Script::raw("204 No Content", &[], "")]).await;
    let error = client(&server.base, &clock()).get_json("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn odd_bytes_inside_a_record_do_not_cost_the_page() {
    for body in [
        &b"{\"title\":\"a\x01b\tc\"}"[..],
        b"{\"memo\":\"\xff\"}",
        br#"{"memo":"\ud835"}"#,
        br#"{"memo":"a\u0000b"}"#,
    ] {
        let server = Server::playing(vec![Script::ok(body)]).await;
        let answer = client(&server.base, &clock()).get_json("links", &[]).await.unwrap();
        assert_eq!((answer.body.as_ref(), answer.attempts), (body, 1));
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_taken_off_json_only() {
    let server = Server::playing(vec![Script::ok("\u{feff}{}")]).await;
    let client = client(&server.base, &clock());
    assert_eq!(client.get_json("links", &[]).await.unwrap().body, "{}");
    assert_eq!(client.get("links", &[]).await.unwrap().body, "\u{feff}{}");
}

#[tokio::test]
async fn compressed_answers_are_asked_for_and_decoded() {
    let compressed = gzip(PAGE);
    let server = Server::playing(vec![Script::answer("200 OK", &gzip_headers(), &compressed)]).await;
    let client = client(&server.base, &clock());
    let answer = client.get_json("links", &[("size", "100"), ("query", "a&b c")]).await.unwrap();
    assert_eq!(answer.body, PAGE);
    assert_eq!(answer.wire_bytes, compressed.len() as u64);
    let seen = &server.seen()[0];
    assert_eq!(seen.target(), "/v4/links?size=100&query=a%26b+c");
    assert_eq!(seen.header("accept-encoding"), Some("gzip"));
    assert_eq!(seen.header("accept"), Some("application/json"));
    assert!(seen.header("user-agent").unwrap().starts_with("crossdock/"));
    let stats = client.stats();
    assert_eq!((stats.requests, stats.wire_bytes), (1, compressed.len() as u64));
    assert_eq!(stats.body_bytes, PAGE.len() as u64);
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused_by_name_and_not_asked_again() {
    let bomb = gzip(vec![b' '; 3_000_000]);
    let endless = [chunks(&[b' '; 4_000]), LAST_CHUNK.to_vec()].concat();
    let scripts = [
        Script::answer("200 OK", &gzip_headers(), bomb),
        Script::answer("200 OK", &[], vec![b' '; 2_000]),
        Script::raw("200 OK", &[("Content-Length", "99999999999")], ""),
        chunked(&[], endless),
    ];
    for script in scripts {
        let server = Server::playing(vec![script]).await;
        let options = Options { body_max_bytes: 1_000, ..Options::default() };
        let client = builder(&server.base, &clock()).options(options).build().unwrap();
        let error = client.get("links", &[]).await.unwrap_err();
        assert!(matches!(error, Error::BodyTooLarge { limit_bytes: 1_000, .. }), "{error}");
        assert!(!error.is_temporary());
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn a_broken_body_does_not_hide_a_refusal() {
    for (script, kind) in [
        (Script::raw("404 Not Found", &[("Content-Length", "500")], "gone"), "gone"),
        (Script::answer("404 Not Found", &gzip_headers(), "not gzip at all"), "Not Found"),
        (Script::answer("404 Not Found", &[], vec![b'x'; 300_000]), "xxxx"),
    ] {
        let server = Server::playing(vec![script]).await;
        let error = client(&server.base, &clock()).get("links", &[]).await.unwrap_err();
        let Error::Status { status: StatusCode::NOT_FOUND, ref excerpt, .. } = error else {
            panic!("{error}")
        };
        assert!(excerpt.contains(kind), "{excerpt}");
        assert!(excerpt.chars().count() <= 201, "{excerpt}");
    }
}

#[tokio::test]
async fn silence_inside_a_body_ends_with_the_read_timeout() {
    let script = Script::raw("200 OK", &[("Content-Length", "5000")], PAGE).then_silence();
    let server = Server::playing(vec![script, Script::ok(PAGE)]).await;
    let client = builder(&server.base, &clock()).options(impatient()).build().unwrap();
    let answer = in_time(client.send(Request::get("links").expect_json())).await.unwrap();
    assert_eq!(answer.attempts, 2);
}
