//! An export of wallet logs and how to ask it.

use crossdock_simulators::wallet_logs::{FaultPlan, Logs, Options, Running, Server};
use serde_json::Value;

use crate::client::{Answer, encoded, exchange};

/// A running simulator of wallet logs.
pub(crate) struct Export {
    pub(crate) running: Running,
}

impl Export {
    pub(crate) async fn start(logs: Logs, faults: &str, options: Options) -> Self {
        let faults: FaultPlan = faults.parse().unwrap();
        let running = Server::start("127.0.0.1:0".parse().unwrap(), logs, faults, options).await.unwrap();
        Self { running }
    }

    pub(crate) async fn with_faults(count: u64, faults: &str) -> Self {
        Self::start(Logs::generate(count, 1), faults, Options::default()).await
    }

    pub(crate) async fn try_ask(&self, method: &str, path: &str, token: &str) -> Option<Answer> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        );
        exchange(self.running.addr(), &head).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.try_ask("GET", path, self.running.token()).await.expect("an answer")
    }

    /// A page with these parameters and, if there is one, a cursor.
    pub(crate) async fn page(&self, parameters: &str, cursor: &str) -> Answer {
        self.get(&format!("/wallet-logs?{parameters}&cursor={}", encoded(cursor))).await
    }

    /// All pages from the beginning to the end, by cursor.
    pub(crate) async fn pages(&self, parameters: &str) -> Vec<Value> {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.page(parameters, &cursor).await;
            assert_eq!(page.status, 200, "{}", page.text());
            pages.push(page.json());
            match next_cursor(pages.last().unwrap()) {
                Some(next) => cursor = next,
                None => return pages,
            }
            assert!(pages.len() < 10_000, "a walk that does not end");
        }
    }

    /// All ids of a walk by cursor.
    pub(crate) async fn walk(&self, parameters: &str) -> Vec<String> {
        self.pages(parameters).await.iter().flat_map(ids).collect()
    }

    /// The ids that a walk is to meet: those of the truth.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.running.logs().truth().map(|row| row.log.id.to_string()).collect()
    }
}

pub(crate) fn next_cursor(page: &Value) -> Option<String> {
    page["meta"]["next_cursor"].as_str().map(str::to_owned)
}

pub(crate) fn records(page: &Value) -> &[Value] {
    page["data"].as_array().expect("data")
}

pub(crate) fn ids(page: &Value) -> Vec<String> {
    records(page).iter().map(|record| record["id"].as_str().unwrap_or_default().to_owned()).collect()
}
