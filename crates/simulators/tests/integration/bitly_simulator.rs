//! What the simulator offers beside the API: truth, changes, counters, limits on connections.

use crossdock_simulators::bitly::{Account, FaultPlan, Mutation, Options, Server, Truth};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::client::{Answer, Simulator};

fn lines(answer: &Answer) -> Vec<serde_json::Value> {
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn the_truth_over_http_is_the_truth_of_the_account() {
    let simulator = Simulator::with_faults(1_000, "rough").await;
    let told: Vec<Truth> = simulator.running.account().truth().collect();
    let told: Vec<serde_json::Value> = told.iter().map(|row| serde_json::to_value(row).unwrap()).collect();
    let all = simulator.get("/__simulator/truth").await;
    assert!(all.complete);
    assert_eq!(lines(&all), told);
    let part = simulator.get("/__simulator/truth?offset=700&limit=25").await;
    assert_eq!(lines(&part), told[700..725]);
    assert_eq!(lines(&simulator.get("/__simulator/truth?offset=5000").await), told[..0]);
    assert_eq!(simulator.get("/__simulator/truth?offset=x").await.status, 400);
}

#[tokio::test]
async fn the_list_says_what_the_truth_says() {
    let simulator = Simulator::with_faults(100, "none").await;
    let page = simulator.list("").await.json();
    let rows: Vec<Truth> = simulator.running.account().truth().collect();
    for link in page["links"].as_array().unwrap() {
        let rows: Vec<_> = rows.iter().filter(|row| link["id"] == row.source_id).collect();
        let back_halves = link["custom_bitlinks"].as_array().map_or(0, Vec::len);
        assert_eq!(rows.len(), 1 + back_halves);
        for row in rows {
            assert_eq!(link["long_url"].as_str(), row.destination.as_deref());
            assert_eq!(link["title"].as_str(), row.title.as_deref());
            assert_eq!(link["archived"], row.archived);
            let tags: Vec<&str> =
                link["tags"].as_array().into_iter().flatten().map(|tag| tag.as_str().unwrap()).collect();
            assert_eq!(tags, row.tags);
        }
    }
}

#[tokio::test]
async fn edits_deletions_and_additions_show_in_the_list_and_in_the_truth() {
    let simulator = Simulator::with_faults(120, "none").await;
    let ids = simulator.walk().await;
    let edit = format!(
        r#"{{"op":"edit","id":"{}","destination":"https://example.com/new","title":"New","tags":["t"],"archived":true}}"#,
        ids[7]
    );
    assert_eq!(simulator.post("/__simulator/mutate", &edit).await.json()["id"], ids[7]);
    simulator.running.mutate(Mutation::Delete { id: ids[110].clone() }).unwrap();
    let add = r#"{"op":"add","destination":"https://example.com/added","slug":"a/b"}"#;
    assert_eq!(simulator.post("/__simulator/mutate", add).await.json()["id"], "go.example.com/a/b");
    let add = format!(r#"{{"op":"add","destination":"https://example.com/x","behind":"{}"}}"#, ids[50]);
    let behind = simulator.post("/__simulator/mutate", &add).await.json()["id"].as_str().unwrap().to_owned();
    let page = simulator.list("").await.json();
    let edited = &page["links"][8];
    assert_eq!(edited["id"], ids[7]);
    assert_eq!(edited["long_url"], "https://example.com/new");
    assert_eq!((&edited["title"], &edited["archived"]), (&"New".into(), &true.into()));
    let mut expected = ids.clone();
    expected.remove(110);
    expected.insert(51, behind);
    expected.insert(0, "go.example.com/a/b".to_owned());
    assert_eq!(simulator.walk().await, expected);
    let mut told: Vec<String> = simulator.running.account().truth().map(|row| row.source_id).collect();
    told.dedup();
    assert_eq!(told, expected);
    assert_eq!(simulator.get(&format!("/v4/bitlinks/{}", ids[110])).await.status, 410);
    let added = simulator.get("/v4/bitlinks/go.example.com/a/b").await.json();
    assert_eq!(added["long_url"], "https://example.com/added");
    assert_eq!(simulator.running.ready().links, 121);
    assert_eq!(simulator.running.ready().slugs, simulator.running.account().truth().count() as u64);
}

#[tokio::test]
async fn a_change_that_cannot_be_made_is_refused_with_its_reason() {
    let simulator = Simulator::with_faults(10, "none").await;
    for (body, status, reason) in [
        ("{", 400, "EOF"),
        (r#"{"op":"explode"}"#, 400, "explode"),
        (r#"{"op":"edit","id":"go.example.com/3nothng"}"#, 409, "3nothng"),
        (r#"{"op":"edit","id":"go.example.com/x","colour":"red"}"#, 400, "colour"),
    ] {
        let answer = simulator.post("/__simulator/mutate", body).await;
        assert_eq!(answer.status, status, "{body}");
        let description = answer.json()["description"].as_str().unwrap().to_owned();
        assert!(description.contains(reason), "{body}: {description}");
    }
}

#[tokio::test]
async fn counters_tell_what_was_asked() {
    let simulator = Simulator::with_faults(250, "500@2").await;
    simulator.get("/v4/user").await;
    let cursor = simulator.list("").await.cursor();
    assert_eq!(simulator.list(&cursor).await.status, 500);
    simulator.list(&cursor).await;
    let stats = simulator.get("/__simulator/stats").await.json();
    assert_eq!(stats["requests"]["user"], 1);
    assert_eq!(stats["requests"]["list"], 3);
    assert_eq!(stats["list_requests"], 3);
    let cursors: Vec<_> =
        stats["lists"].as_array().unwrap().iter().map(|call| call["cursor"].as_str().unwrap()).collect();
    assert_eq!(cursors, ["", cursor.as_str(), cursor.as_str()]);
    assert_eq!(stats["lists"][1]["behind"], 99);
    assert_eq!(stats["struck"], serde_json::json!([{"request": 2, "fault": "500"}]));
    assert_eq!(stats["in_flight"], 1);
}

/// Asks on a connection that stays open, and reads the answer to its end.
async fn ask(stream: &mut TcpStream, simulator: &Simulator, path: &str) -> usize {
    let request = simulator.head(path).replace("Connection: close\r\n", "");
    stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    let mut bytes = [0; 4_096];
    stream.read(&mut bytes).await.unwrap_or(0)
}

#[tokio::test]
async fn a_sixth_connection_is_closed_without_an_answer_until_one_is_free() {
    let simulator = Simulator::with_faults(10, "none").await;
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(simulator.addr()).await.unwrap();
        assert!(ask(&mut stream, &simulator, "/v4/user").await > 0);
        open.push(stream);
    }
    assert!(simulator.try_get("/v4/user").await.is_none());
    let stats = simulator.get("/__simulator/stats").await.json();
    assert_eq!(stats["connections_refused"], 1);
    assert!(stats["connections_max"].as_u64().unwrap() >= 6);
    for stream in &mut open {
        assert!(ask(stream, &simulator, "/v4/user").await > 0);
    }
    drop(open.pop());
    while simulator.running.stats().connections > 4 {
        tokio::task::yield_now().await;
    }
    assert_eq!(simulator.get("/v4/user").await.status, 200);
}

#[tokio::test]
async fn latency_delays_the_api_and_nothing_else_changes() {
    let latency = std::time::Duration::from_millis(5);
    let options = Options { latency, ..Options::default() };
    let simulator = Simulator::start(Account::generate(10, 1), "none", options).await;
    let before = tokio::time::Instant::now();
    assert_eq!(simulator.list("").await.ids().len(), 10);
    assert!(before.elapsed() >= latency);
}

#[tokio::test]
async fn the_line_it_prints_has_the_promised_keys() {
    let simulator = Simulator::with_faults(10, "none").await;
    let line = serde_json::to_string(&simulator.running.ready()).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let keys: Vec<_> = ready.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = ["url", "token", "group", "domain", "links", "slugs"];
    expected.sort_unstable();
    let mut keys = keys;
    keys.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(ready["url"], format!("http://{}/v4", simulator.addr()));
    let debug = format!("{:?} {:?}", simulator.running, simulator.running.ready());
    assert!(!debug.contains(&simulator.token), "{debug}");
}

#[tokio::test]
async fn a_simulator_on_every_address_prints_one_that_can_be_reached() {
    let account = Account::generate(10, 1);
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let running = Server::start(everywhere, account, FaultPlan::none(), Options::default()).await.unwrap();
    assert_eq!(running.base_url(), format!("http://127.0.0.1:{}/v4", running.addr().port()));
}

#[tokio::test]
async fn after_a_shutdown_nobody_answers() {
    let simulator = Simulator::with_faults(10, "none").await;
    let addr = simulator.addr();
    let mut open = TcpStream::connect(addr).await.unwrap();
    ask(&mut open, &simulator, "/v4/user").await;
    simulator.running.shutdown().await;
    assert!(TcpStream::connect(addr).await.is_err());
    let mut rest = Vec::new();
    let _ = open.read_to_end(&mut rest).await;
    assert!(
        open.write_all(b"GET / HTTP/1.1\r\n\r\n").await.is_err()
            || open.read(&mut [0; 1]).await.unwrap_or(0) == 0
    );
}
