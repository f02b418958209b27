//! The API without faults.

use std::collections::HashSet;

use crossdock_simulators::bitly::{Account, Options, Shape};

use crate::client::Simulator;

async fn plain(count: u64) -> Simulator {
    Simulator::with_faults(count, "none").await
}

#[tokio::test]
async fn walking_all_pages_gives_every_link_exactly_once() {
    let simulator = plain(1_234).await;
    let ids = simulator.walk().await;
    assert_eq!(ids.len(), 1_234);
    let told: HashSet<String> = simulator.running.account().truth().map(|row| row.source_id).collect();
    assert_eq!(ids.into_iter().collect::<HashSet<_>>(), told);
    let stats = simulator.running.stats();
    assert_eq!(stats.list_requests, 13);
    let places: Vec<_> = stats.lists.iter().map(|call| call.behind).collect();
    let expected: Vec<_> = (0..13).map(|page| (page > 0).then_some(page * 100 - 1)).collect();
    assert_eq!(places, expected);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let (one, same) = (plain(300).await, plain(300).await);
    let other = Simulator::start(Account::generate(300, 2), "none", Options::default()).await;
    let text = |simulator: &Simulator, body: String| {
        body.replace(&simulator.addr().to_string(), "HOST").replace(&simulator.group, "GROUP")
    };
    let first = text(&one, one.list("").await.text());
    assert_eq!(first, text(&same, same.list("").await.text()));
    assert_ne!(first, text(&other, other.list("").await.text()));
    assert_eq!(one.token, same.token);
    assert_ne!(one.token, other.token);
}

#[tokio::test]
async fn archived_links_are_left_out_unless_they_are_asked_for() {
    let simulator = plain(100).await;
    let list = |archived: &str| format!("/v4/groups/{}/bitlinks?size=100{archived}", simulator.group);
    let ids = async |archived: &str| -> HashSet<String> {
        simulator.get(&list(archived)).await.ids().into_iter().collect()
    };
    let (default, off, on, both) =
        (ids("").await, ids("&archived=off").await, ids("&archived=on").await, ids("&archived=both").await);
    assert_eq!(default, off);
    assert!(!on.is_empty());
    assert!(on.is_disjoint(&off));
    assert_eq!(both.len(), 100);
    assert_eq!(on.union(&off).cloned().collect::<HashSet<_>>(), both);
}

#[tokio::test]
async fn the_last_page_has_an_empty_cursor_and_an_empty_next() {
    for count in [0, 1, 99, 100, 101, 200] {
        let simulator = plain(count).await;
        let mut page = simulator.list("").await;
        let mut links = page.ids().len();
        while !page.cursor().is_empty() {
            page = simulator.list(&page.cursor()).await;
            links += page.ids().len();
        }
        assert_eq!(links as u64, count);
        let body = page.json();
        assert_eq!(
            body["pagination"],
            serde_json::json!({"next": "", "search_after": "", "size": 100}),
            "{count}"
        );
        assert_eq!(simulator.running.stats().list_requests, count.div_ceil(100).max(1));
    }
}

#[tokio::test]
async fn a_switch_lets_an_empty_page_follow_a_full_one() {
    let simulator = Simulator::with_faults(200, "trailing-empty-page").await;
    assert_eq!(simulator.walk().await.len(), 200);
    assert_eq!(simulator.running.stats().list_requests, 3);
}

#[tokio::test]
async fn the_next_url_leads_to_the_next_page_under_the_prefix_that_was_asked() {
    let simulator = plain(300).await;
    let path = simulator.list_path("").replace("/v4/", "/some/prefix/v4/");
    let page = simulator.get(&path).await;
    let next = page.json()["pagination"]["next"].as_str().unwrap().to_owned();
    let origin = format!("http://{}", simulator.addr());
    let path = next.strip_prefix(&origin).unwrap();
    assert!(path.starts_with("/some/prefix/v4/groups/"), "{path}");
    assert!(path.contains("archived=both"), "{path}");
    let following = simulator.get(path).await;
    assert_eq!(following.ids(), simulator.list(&page.cursor()).await.ids());
}

#[tokio::test]
async fn a_public_origin_stands_in_the_next_url() {
    let options =
        Options { public_origin: Some("https://bitly.example.com".to_owned()), ..Options::default() };
    let simulator = Simulator::start(Account::generate(300, 1), "none", options).await;
    let next = simulator.list("").await.json()["pagination"]["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("https://bitly.example.com/v4/groups/"), "{next}");
}

#[tokio::test]
async fn size_and_filters_are_kept() {
    let simulator = plain(500).await;
    let list = async |query: &str| {
        simulator.get(&format!("/v4/groups/{}/bitlinks?archived=both&{query}", simulator.group)).await
    };
    assert_eq!(list("").await.ids().len(), 50);
    assert_eq!(list("size=7").await.ids().len(), 7);
    let all = list("size=100").await;
    let created = all.json()["links"][40]["created_at"].as_str().unwrap().to_owned();
    let row = simulator.running.account().truth().find(|row| row.source_id == all.ids()[40]).unwrap();
    assert_eq!(row.created_at, created.replace("+0000", "Z"));
    let tagged = list("size=100&tags=mail&tags=q1").await.json();
    let tagged = tagged["links"].as_array().unwrap();
    assert!(!tagged.is_empty());
    let has = |link: &serde_json::Value| {
        link["tags"].as_array().unwrap().iter().any(|tag| tag == "mail" || tag == "q1")
    };
    assert!(tagged.iter().all(has));
    // 2024-06-01T00:00:00Z lies within the 500 days of an account of 500 links.
    let instant = 1_717_200_000;
    let before = list(&format!("size=100&created_before={instant}")).await.json();
    let before = before["links"].as_array().unwrap().clone();
    assert!(!before.is_empty());
    assert!(before.iter().all(|link| link["created_at"].as_str().unwrap() < "2024-06"));
    let after = list(&format!("size=100&created_after={instant}")).await.json();
    assert!(
        after["links"]
            .as_array()
            .unwrap()
            .iter()
            .all(|link| link["created_at"].as_str().unwrap() > "2024-06")
    );
}

#[tokio::test]
async fn parameters_that_cannot_be_read_are_refused_by_name() {
    let simulator = plain(10).await;
    for (query, field) in [
        ("size=0", "size"),
        ("size=101", "size"),
        ("size=ten", "size"),
        ("archived=maybe", "archived"),
        ("search_after=ZmFrZQ", "search_after"),
        ("created_before=2026-01-31", "created_before"),
    ] {
        let answer = simulator.get(&format!("/v4/groups/{}/bitlinks?{query}", simulator.group)).await;
        assert_eq!(answer.status, 400, "{query}");
        let body = answer.json();
        assert_eq!(body["errors"][0]["field"], field, "{query}");
        assert_eq!(body["message"], format!("INVALID_ARG_{}", field.to_uppercase()));
    }
    assert_eq!(simulator.running.stats().list_requests, 0);
}

#[tokio::test]
async fn every_endpoint_answers_in_its_form() {
    let simulator = plain(50).await;
    let user = simulator.get("/v4/user").await.json();
    assert_eq!(user["default_group_guid"], simulator.group);
    let groups = simulator.get("/v4/groups").await.json();
    let active: Vec<_> =
        groups["groups"].as_array().unwrap().iter().filter(|group| group["is_active"] == true).collect();
    assert_eq!(active.len(), 1);
    assert_eq!(active[0]["guid"], simulator.group);
    assert_eq!(active[0]["bsds"], serde_json::json!(["go.example.com"]));
    let organization = active[0]["organization_guid"].as_str().unwrap();
    let same = simulator.get(&format!("/v4/groups?organization_guid={organization}")).await.json();
    assert_eq!(same, groups);
    let one = simulator.get(&format!("/v4/groups/{}", simulator.group)).await.json();
    assert_eq!(&one, active[0]);
    let tags = simulator.get(&format!("/v4/groups/{}/tags", simulator.group)).await.json();
    assert!(tags["tags"].as_array().unwrap().iter().any(|tag| tag == "mail"));
    assert_eq!(simulator.get("/v4/bsds").await.json(), serde_json::json!({"bsds": ["go.example.com"]}));
    simulator.list("").await;
    let limits = simulator.get("/v4/user/platform_limits?path=/groups/{group_guid}/bitlinks").await.json();
    let method = &limits["platform_limits"][0]["methods"][0];
    assert_eq!(*method, serde_json::json!({"name": "GET", "limit": 1_500, "count": 1}));
    let plan = simulator.get(&format!("/v4/organizations/{organization}/plan_limits")).await.json();
    assert!(plan["plan_limits"].as_array().unwrap().iter().any(|limit| limit["name"] == "api_calls"));
    let organizations = simulator.get("/v4/organizations").await.json();
    assert_eq!(organizations["organizations"][0]["guid"], organization);
}

#[tokio::test]
async fn one_link_reads_as_it_does_in_the_list_and_410_when_it_is_deleted() {
    let simulator = Simulator::with_faults(50, "deleted-record@5").await;
    let page = simulator.list("").await.json();
    for link in [&page["links"][3], &page["links"][40]] {
        let id = link["id"].as_str().unwrap();
        assert_eq!(simulator.get(&format!("/v4/bitlinks/{id}")).await.json(), *link);
        let encoded = id.replace('/', "%2F");
        assert_eq!(simulator.get(&format!("/v4/bitlinks/{encoded}")).await.json(), *link);
    }
    let gone = simulator.get(&format!("/v4/bitlinks/{}", page["links"][5]["id"].as_str().unwrap())).await;
    assert_eq!((gone.status, gone.json()["message"].as_str()), (410, Some("GONE")));
    let missing = simulator.get("/v4/bitlinks/go.example.com/3nothng").await;
    assert_eq!((missing.status, missing.json()["message"].as_str()), (404, Some("NOT_FOUND")));
}

#[tokio::test]
async fn whoever_may_not_ask_is_told_so_in_the_documented_form() {
    let simulator = plain(10).await;
    let closed = simulator.running.account().groups()[0].guid.clone();
    let ask = async |path: &str, headers: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        simulator.send(&request).await.unwrap()
    };
    let good = format!("Authorization: Bearer {}\r\n", simulator.token);
    let no_scheme = format!("Authorization: {}\r\n", simulator.token);
    for (path, headers, status, message) in [
        ("/v4/user", "", 401, "UNAUTHORIZED"),
        (
            "/v4/user",
            "Authorization: Bearer 0123456789012345678901234567890123456789\r\n",
            401,
            "UNAUTHORIZED",
        ),
        ("/v4/user", no_scheme.as_str(), 401, "UNAUTHORIZED"),
        ("/v4/groups/Bnone000000/bitlinks", good.as_str(), 404, "NOT_FOUND"),
        (&format!("/v4/groups/{closed}/bitlinks"), good.as_str(), 403, "FORBIDDEN"),
        ("/v4/nothing", good.as_str(), 404, "NOT_FOUND"),
        ("/elsewhere", good.as_str(), 404, "NOT_FOUND"),
        ("/__simulator/stats", "", 401, "UNAUTHORIZED"),
    ] {
        let answer = ask(path, headers).await;
        let body = answer.json();
        assert_eq!((answer.status, body["message"].as_str()), (status, Some(message)), "{path}");
        for field in ["description", "resource"] {
            assert!(body[field].is_string(), "{path}: {body}");
        }
        assert!(body["errors"].is_array(), "{path}: {body}");
    }
    assert_eq!(simulator.post("/v4/groups", "{}").await.status, 405);
}

#[tokio::test]
async fn a_shape_gives_more_groups_an_empty_one_and_links_nobody_can_take_along() {
    let shape = Shape { groups: 3, empty_group: true, vendor_domain_percent: 20, ..Shape::default() };
    let mut simulator = Simulator::start(Account::shaped(900, 1, shape), "none", Options::default()).await;
    let groups = simulator.get("/v4/groups").await.json();
    let guids: Vec<String> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|group| group["is_active"] == true)
        .map(|group| group["guid"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(guids.len(), 4);
    let mut all = Vec::new();
    for guid in &guids {
        simulator.group.clone_from(guid);
        let ids = simulator.walk().await;
        assert_eq!(
            ids.is_empty(),
            Some(guid.as_str()) == simulator.running.account().empty_group().map(|group| group.guid.as_str())
        );
        all.extend(ids);
    }
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 900);
    assert_eq!(all.len(), 900);
    let vendors = all.iter().filter(|id| id.starts_with("bit.ly/")).count();
    assert!((120..240).contains(&vendors), "{vendors}");
}

#[tokio::test]
async fn a_cursor_of_one_group_is_refused_by_another() {
    let shape = Shape { groups: 2, ..Shape::default() };
    let mut simulator = Simulator::start(Account::shaped(900, 1, shape), "none", Options::default()).await;
    let cursor = simulator.list("").await.cursor();
    simulator.group = simulator.running.account().groups()[2].guid.clone();
    assert_eq!(simulator.list(&cursor).await.status, 400);
}
