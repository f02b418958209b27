//! `crossdock serve`: a server that imports, is killed, and goes on.

use serde_json::{Value, json};

use crate::ground::{Answer, Database, Ground, PATIENCE, Process, Simulator, ask, on_both};

/// A running server with the API token it printed.
struct Server {
    process: Process,
    address: String,
    bearer: String,
}

impl Server {
    /// On a new database, which prints its token.
    fn first(ground: &Ground, account: &Simulator) -> Self {
        let mut server = Self::again(ground, account, String::new());
        let token = server.process.line();
        assert!(
            !token.contains(char::is_whitespace) && token.len() > 30,
            "a token alone on its line: {token}"
        );
        server.bearer = format!("Bearer {token}");
        server
    }

    fn again(ground: &Ground, account: &Simulator, bearer: String) -> Self {
        let mut command = ground.command(&["serve", "--listen", "127.0.0.1:0", "--pace", "none"]);
        let mut process = Process::start(command.args(["--base-url", &account.url]));
        let line = process.hears("serving on http://");
        let address = line.rsplit("http://").next().expect("it was just found").trim().to_owned();
        Self { process, address, bearer }
    }

    fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        ask(&self.address, method, path, &[("Authorization", &self.bearer)], body)
    }

    fn add_domain(&self, host: &str) {
        let added = self.api("POST", "/v1/domains", Some(&json!({"host": host})));
        assert!(added.status < 300, "{added:?}");
    }

    /// Asks for the import until it is in this state.
    fn until(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.api("GET", &format!("/v1/imports/{id}"), None);
            assert_eq!(answer.status, 200, "{answer:?}");
            let import = answer.json();
            if wanted(&import) {
                return import;
            }
            assert!(std::time::Instant::now() < deadline, "waited in vain: {import}");
        }
    }
}

fn start(account: &Simulator) -> Value {
    json!({"vendor": "bitly", "domain": account.domain, "token": account.token})
}

fn a_server_imports_redirects_and_stops(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(400, &[]);
    let mut server = Server::first(&ground, &account);
    assert_eq!(ask(&server.address, "GET", "/v1/imports", &[], None).status, 401);
    assert_eq!(ask(&server.address, "GET", "/healthz", &[], None).status, 200);
    server.add_domain(&account.domain);

    let started = server.api("POST", "/v1/imports", Some(&start(&account)));
    assert_eq!(started.status, 202, "{started:?}");
    assert!(!started.body.contains(&account.token));
    let id = started.json()["id"].as_str().expect("an id").to_owned();
    let done = server.until(&id, |import| import["status"] == "completed");
    assert_eq!((done["outcome"].as_str(), done["imported"].as_i64()), (Some("clean"), Some(400)), "{done}");
    assert_eq!(done["slugs"].as_i64(), Some(account.slugs));
    let verified = server.api("POST", &format!("/v1/imports/{id}/verify"), None).json();
    assert_eq!((&verified["holds"], &verified["verified"]), (&json!(true), &json!(400)), "{verified}");

    // Links of the import answer on their own host, and nothing else does.
    let links = server.api("GET", "/v1/links?limit=100", None).json();
    let mut asked = 0;
    for link in links["data"].as_array().expect("a list") {
        let destination = link["destination_url"].as_str().expect("a text");
        let plain =
            ["expires_at", "ios_url", "android_url", "geo", "utm"].iter().all(|key| link[key].is_null());
        if !plain
            || link["enabled"] == false
            || link["password_protected"] == true
            || !destination.bytes().all(|byte| byte.is_ascii_graphic())
        {
            continue;
        }
        let url = link["short_url"].as_str().expect("a text");
        let (_, path) = url.split_once(&account.domain).expect("it is on the domain");
        let answer = ask(&server.address, "GET", path, &[("Host", &account.domain)], None);
        assert_eq!((answer.status, answer.header("location")), (302, Some(destination)), "{url}");
        asked += 1;
    }
    assert!(asked > 10, "{asked} plain links of a hundred");
    let missing = ask(&server.address, "GET", "/surely-not-there", &[("Host", &account.domain)], None);
    assert_eq!(missing.status, 404, "{missing:?}");

    assert_eq!(server.process.terminate(), 0, "it stops cleanly: {}", server.process.rest_of_talk());
    let talk = server.process.rest_of_talk();
    assert!(!talk.contains(&account.token), "the token is in no line");
    ground.holds_nowhere(&account.token);

    // The API token is printed once.
    let bearer = std::mem::take(&mut server.bearer);
    let mut server = Server::again(&ground, &account, bearer);
    assert_eq!(server.api("GET", &format!("/v1/imports/{id}"), None).status, 200, "the token still opens");
    assert_eq!(server.process.terminate(), 0);
    assert!(!server.process.rest_of_talk().contains("shown once"));
}

on_both!(a_server_imports_redirects_and_stops);

fn a_killed_server_waits_for_the_token_and_goes_on(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(3_000, &["--latency-ms", "15"]);
    let mut server = Server::first(&ground, &account);
    server.add_domain(&account.domain);
    let started = server.api("POST", "/v1/imports", Some(&start(&account))).json();
    let id = started["id"].as_str().expect("an id").to_owned();
    server.until(&id, |import| import["source_links"].as_i64() >= Some(500));
    server.process.kill();
    ground.holds_nowhere(&account.token);

    let server = Server::again(&ground, &account, server.bearer.clone());
    // What is staged is processed without the token.
    let waits = server.until(&id, |import| import["status"] == "awaiting_token");
    let outcomes: i64 = ["imported", "failed", "duplicates", "skipped", "filtered", "unchanged", "updated"]
        .iter()
        .map(|key| waits[key].as_i64().expect("a number"))
        .sum();
    assert_eq!(Some(outcomes), waits["source_links"].as_i64(), "{waits}");
    assert!(waits["source_links"].as_i64() < Some(3_000), "{waits}");
    let token = json!({"token": account.token});
    let resumed = server.api("POST", &format!("/v1/imports/{id}/resume"), Some(&token));
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let done = server.until(&id, |import| import["status"] == "completed");
    assert_eq!((done["outcome"].as_str(), done["imported"].as_i64()), (Some("clean"), Some(3_000)), "{done}");
    assert_eq!((done["slugs"].as_i64(), done["duplicates"].as_i64()), (Some(account.slugs), Some(0)));
    assert!(account.pages_asked() <= 29 + 2, "{} pages", account.pages_asked());
    let verified = server.api("POST", &format!("/v1/imports/{id}/verify"), None).json();
    assert_eq!((&verified["holds"], &verified["verified"]), (&json!(true), &json!(3_000)), "{verified}");
    ground.holds_nowhere(&account.token);
}

on_both!(a_killed_server_waits_for_the_token_and_goes_on);

#[test]
fn an_import_beside_a_server_is_refused_with_the_call_that_works() {
    let ground = Ground::new(Database::Sqlite);
    let account = Simulator::start(100, &[]);
    let server = Server::first(&ground, &account);
    server.add_domain(&account.domain);
    let more = ["--map-domain", &format!("other.example.com={}", account.domain), "--on-conflict", "skip"];
    let done = ground.import(&account, &more);
    assert_eq!(done.code, 2, "{done:?}");
    let url = format!("http://{}/v1/imports", server.address);
    done.says(&["crossdock serve", &url, "curl -X POST"]);
    assert!(!done.stderr.contains(&account.token));

    // The body it shows is accepted as it stands, with the token in its place.
    let (_, body) = done.stderr.split_once("-d '").expect("a body is shown");
    let (body, _) = body.split_once('\'').expect("the body ends");
    let mut body: Value = serde_json::from_str(body).expect("the body is JSON");
    body["token"] = json!(account.token);
    let started = server.api("POST", "/v1/imports", Some(&body));
    assert_eq!(started.status, 202, "{started:?}");
    let import = started.json();
    assert_eq!((&import["conflict"], &import["domain"]), (&json!("skip"), &json!(account.domain)));
    assert_eq!(import["filter"]["map_domain"]["other.example.com"], json!(account.domain));
    let id = import["id"].as_str().expect("an id");
    assert_eq!(server.until(id, |import| import["status"] == "completed")["imported"], json!(100));
}
