//! Jobs of every kind: the API's list and the pages.

use async_trait::async_trait;
use crossdock_http::OtherJobs;
use db::{Database, Id};
use engine::store::jobs;
use engine::{Job, JobId, Mode, NewJob};
use links::Scope;
use serde_json::{Value, json};

use crate::client::{Answer, send};
use crate::server::{Server, token};

/// A kind of jobs that belong to no workspace.
pub(crate) struct TestLedgers;

#[async_trait]
impl OtherJobs for TestLedgers {
    fn kind(&self) -> &'static str {
        "ledger"
    }

    fn title(&self, job: &Job) -> String {
        format!("books <b>into</b> {}", job.lane)
    }

    async fn certificate(&self, _job: JobId) -> db::Result<Option<Value>> {
        Ok(Some(json!({"holds": false, "failings": ["<script>alert(1)</script>"], "records": 7})))
    }
}

async fn insert(database: &Database, kind: &str) -> JobId {
    let id = JobId(Id::new());
    let job = NewJob {
        kind: kind.to_owned(),
        lane: "bank.transactions".to_owned(),
        mode: Mode::Stream,
        params: "{}".to_owned(),
        request_id: None,
    };
    let mut tx = database.begin().await.unwrap();
    jobs::insert(tx.conn(), id, &job).await.unwrap();
    tx.commit().await.unwrap();
    id
}

async fn as_bearer(server: &Server, token: &str, path: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("Host", "admin.example.com"), ("Authorization", bearer.as_str())];
    send(server.address, "GET", path, &headers, "").await
}

fn ids(answer: &Answer) -> Vec<String> {
    let body = answer.json();
    let data = body["data"].as_array().expect("a list").iter();
    data.map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

db::on_both!(
    jobs_are_the_workspaces_imports_and_those_of_nobody,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: Database| async move {
        let server = Server::start(database.clone()).await;
        let ledger = insert(&database, "ledger").await.to_string();
        let unknown = insert(&database, "something").await.to_string();
        server.import().await;
        let listed = server.api("GET", "/v1/jobs", "").await;
        let found = ids(&listed);
        assert_eq!((found.len(), &found[1]), (2, &ledger), "newest first: {}", listed.body);
        let import = found[0].clone();
        assert_eq!(listed.json()["data"][0]["kind"], "import");
        assert_eq!(listed.json()["data"][0]["imported"], 2);
        let first = server.api("GET", "/v1/jobs?limit=1", "").await;
        assert_eq!(ids(&first), std::slice::from_ref(&import));
        let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
        let second = server.api("GET", &format!("/v1/jobs?limit=1&cursor={cursor}"), "").await;
        assert_eq!((ids(&second), second.json()["next_cursor"].clone()), (vec![ledger.clone()], Value::Null));

        let whole = server.api("GET", &format!("/v1/jobs/{import}"), "").await.json();
        assert_eq!(
            (whole["outcome"].as_str(), whole["history"].as_array().unwrap().len()),
            (Some("partial"), 1)
        );
        assert_eq!(whole["partitions"][0]["key"], "all");
        assert!(whole["certificate"].is_null());
        let whole = server.api("GET", &format!("/v1/jobs/{ledger}"), "").await.json();
        assert_eq!((whole["kind"].as_str(), &whole["certificate"]["records"]), (Some("ledger"), &json!(7)));

        // Another workspace sees what is nobody's, and no import of this one.
        let mut tx = database.begin().await.unwrap();
        let name = links::Name::new("other").unwrap();
        let (other, _) = links::ensure_workspace(&mut tx, &name, server.domain.created_at).await.unwrap();
        tx.commit().await.unwrap();
        let stranger = token(&database, other.id, &[Scope::JobsRead]).await;
        assert_eq!(ids(&as_bearer(&server, &stranger, "/v1/jobs").await), std::slice::from_ref(&ledger));
        for (id, status) in [(&import, 404), (&ledger, 200), (&unknown, 404)] {
            assert_eq!(as_bearer(&server, &stranger, &format!("/v1/jobs/{id}")).await.status, status, "{id}");
        }
        // The scope is one of its own.
        let without: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| *scope != Scope::JobsRead).collect();
        let without = token(&database, server.workspace, &without).await;
        for path in ["/v1/jobs".to_owned(), format!("/v1/jobs/{ledger}")] {
            let refused = as_bearer(&server, &without, &path).await;
            assert_eq!((refused.status, &refused.json()["scope"]), (403, &json!("jobs:read")), "{path}");
            assert_eq!(server.ask("GET", "admin.example.com", &path).await.status, 401, "{path}");
        }
        server.stop().await;
    }
);

db::on_both!(
    the_pages_of_jobs_need_their_signature_and_escape_what_they_show,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database: Database| async move {
        let server = Server::start(database.clone()).await;
        let ledger = insert(&database, "ledger").await.to_string();
        server.import().await;
        let listed = server.api("GET", "/v1/jobs", "").await.json();
        let address = listed["page_url"].as_str().unwrap().strip_prefix("https://admin.example.com").unwrap();
        let page = server.ask("GET", "admin.example.com", address).await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(page.body.contains("books &lt;b&gt;into&lt;/b&gt; bank.transactions"), "{}", page.body);
        assert!(page.body.contains("completed, partial"), "{}", page.body);
        let link =
            page.body.split("href=\"/jobs/").find(|rest| rest.starts_with(&ledger)).expect("it is linked");
        let link = format!("/jobs/{}", link.split('"').next().unwrap().replace("&amp;", "&"));
        let page = server.ask("GET", "admin.example.com", &link).await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(page.body.contains("does not hold"), "{}", page.body);
        assert!(page.body.contains("&lt;script&gt;") && !page.body.contains("<script"), "{}", page.body);
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));

        // Neither opens another one's.
        let mut tx = database.begin().await.unwrap();
        let name = links::Name::new("other").unwrap();
        let (other, _) = links::ensure_workspace(&mut tx, &name, server.domain.created_at).await.unwrap();
        tx.commit().await.unwrap();
        let exchanged = address.replace(&server.workspace.to_string(), &other.id.to_string());
        assert_ne!(exchanged, address);
        let (_, signature) = link.split_once('?').unwrap();
        let import = listed["data"][0]["id"].as_str().unwrap();
        for path in [
            "/jobs".to_owned(),
            format!("/jobs/{ledger}"),
            format!("/jobs/{import}?{signature}"),
            format!("/jobs?workspace={}&{signature}", server.workspace),
            exchanged,
        ] {
            assert_eq!(server.ask("GET", "admin.example.com", &path).await.status, 403, "{path}");
        }
        server.clock.advance(std::time::Duration::from_secs(8 * 24 * 3600));
        for path in [address, &link] {
            assert_eq!(server.ask("GET", "admin.example.com", path).await.status, 403, "{path}");
        }
        server.stop().await;
    }
);
