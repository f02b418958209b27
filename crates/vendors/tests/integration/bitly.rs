//! A Bitly account walked from end to end, on good days and on bad ones. No test waits: the clock is moved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossdock_vendors::Surroundings;
use crossdock_vendors::bitly::{Bitly, BitlyMapper, BitlyOptions, Certainty, LinkCount};
use engine::{Cursor, Page, PartitionSpec, Position, Source, SourceError};
use imports::Token;
use imports::{Incoming, IncomingLink, Mapper};
use simulators::bitly::{Account, Mutation, Options, Running, Server, Shape, Truth};
use time::OffsetDateTime;
use upstream::testing::{FixedChance, TestClock};

struct Walked {
    server: Running,
    began: SystemTime,
    clock: TestClock,
    bitly: Bitly,
}

impl Walked {
    async fn account(account: Account, faults: &str) -> Self {
        let listen = "127.0.0.1:0".parse().unwrap();
        let server =
            Server::start(listen, account, faults.parse().unwrap(), Options::default()).await.unwrap();
        let token = server.token();
        Self::with(server, |options| options.token = Token::new(token.as_str()))
    }

    async fn links(count: u64, faults: &str) -> Self {
        Self::account(Account::generate(count, 7), faults).await
    }

    fn with(server: Running, change: impl FnOnce(&mut BitlyOptions)) -> Self {
        // The simulator's answers carry the real date.
        let began = SystemTime::now();
        let clock = TestClock::at(began);
        let mut options = BitlyOptions::new(Token::new("wrong-token"));
        options.base_url = server.base_url();
        change(&mut options);
        let surroundings = Surroundings {
            clock: Some(Arc::new(clock.clone())),
            chance: Some(Arc::new(FixedChance(0.5))),
            observe: None,
        };
        let bitly = Bitly::new(options, surroundings).unwrap();
        Self { server, began, clock, bitly }
    }

    fn group(self, guid: &str) -> Self {
        let token = self.server.token();
        Self::with(self.server, |options| {
            options.token = Token::new(token);
            options.group = Some(guid.to_owned());
        })
    }

    fn partition(&self) -> PartitionSpec {
        PartitionSpec {
            key: self.server.account().default_group().guid.clone(),
            expected: None,
            left_out: None,
            closing: false,
        }
    }

    async fn first(&self) -> Result<Page, SourceError> {
        self.bitly.page(&self.partition(), &Position::Beginning).await
    }

    /// Every page of every partition, in order.
    async fn pages(&self) -> Result<Vec<Page>, SourceError> {
        let mut pages = Vec::new();
        for partition in self.bitly.partitions().await?.into_iter().filter(|part| part.left_out.is_none()) {
            let mut at = Position::Beginning;
            while at != Position::End {
                let page = self.bitly.page(&partition, &at).await?;
                at = page.next.clone();
                pages.push(page);
                assert!(pages.len() < 1_000, "the walk does not end");
            }
        }
        Ok(pages)
    }

    async fn records(&self) -> Vec<bytes::Bytes> {
        self.pages().await.unwrap().into_iter().flat_map(|page| page.records).collect()
    }

    fn truth(&self) -> BTreeMap<String, Vec<Truth>> {
        let mut links: BTreeMap<String, Vec<Truth>> = BTreeMap::new();
        for row in self.server.account().truth() {
            links.entry(row.source_id.clone()).or_default().push(row);
        }
        links
    }
}

/// What the records became, by what an importer would do with them.
#[derive(Default)]
struct Mapped {
    links: BTreeMap<String, IncomingLink>,
    filtered: BTreeSet<String>,
    unreadable: BTreeMap<String, String>,
}

fn mapped(records: &[bytes::Bytes]) -> Mapped {
    let mut mapped = Mapped::default();
    for raw in records {
        match BitlyMapper.map(raw) {
            Ok(Incoming::Link(link)) => drop(mapped.links.insert(link.source_id.clone(), *link)),
            Ok(Incoming::Filtered { source_id, .. }) => drop(mapped.filtered.insert(source_id)),
            Err(unreadable) => {
                let id = unreadable.source_id.expect("the simulator's broken records still show their id");
                mapped.unreadable.insert(id, unreadable.reason.code.into_owned());
            }
        }
    }
    mapped
}

/// Every link that must come over is there with what the account says about it.
fn compare(mapped: &Mapped, truth: &BTreeMap<String, Vec<Truth>>) {
    for (id, rows) in truth {
        let first = &rows[0];
        match first.fault {
            Some("missing-long-url" | "null-long-url" | "empty-long-url") => {
                assert_eq!(
                    mapped.unreadable.get(id).map(String::as_str),
                    Some("missing_destination"),
                    "{id}"
                );
            }
            Some("broken-record") => {
                assert_eq!(mapped.unreadable.get(id).map(String::as_str), Some("malformed_json"), "{id}");
            }
            Some("deleted-record") => assert!(mapped.filtered.contains(id), "{id}"),
            _ => compare_link(mapped.links.get(id).unwrap_or_else(|| panic!("{id} is missing")), rows),
        }
    }
}

fn compare_link(link: &IncomingLink, rows: &[Truth]) {
    let first = &rows[0];
    let id = &first.source_id;
    let addresses: Vec<(&str, &str)> =
        link.addresses.iter().map(|address| (address.host.as_str(), address.slug.as_str())).collect();
    let expected: Vec<(&str, &str)> = rows.iter().map(|row| (row.host.as_str(), row.slug.as_str())).collect();
    assert_eq!(addresses, expected, "{id}");
    if let Some(destination) = &first.destination {
        assert_eq!(&link.destination, destination, "{id}");
    }
    match first.fault {
        Some("control-in-title") => {
            assert_eq!(
                link.title.as_deref(),
                Some("Raw\u{1}control\tsigns,\nand\u{1f}a line\r\nend"),
                "{id}"
            );
        }
        Some("quotes-in-title") => {
            let title = link.title.as_deref().unwrap();
            let whole = [
                "The \"best\" offers, \"all\" of them: {so to say}, \"archived\" or not",
                "A 7\" single, {or} more",
            ];
            assert!(whole.contains(&title), "{id}: {title}");
        }
        _ => assert_eq!(link.title, first.title, "{id}"),
    }
    assert_eq!(link.tags, first.tags, "{id}");
    assert_eq!(link.archived, first.archived, "{id}");
    assert_eq!(link.created_at.map(|at| format!("{at}")), Some(first.created_at.clone()), "{id}");
    assert_eq!(link.expires_at.map(|at| format!("{at}")), first.expires_at, "{id}");
}

#[tokio::test]
async fn b1_a_whole_account_comes_over_with_its_archived_links() {
    let walked = Walked::links(2_345, "none").await;
    let records = walked.records().await;
    assert_eq!(records.len(), 2_345);
    let mapped = mapped(&records);
    assert_eq!(mapped.links.len(), 2_345);
    assert!(mapped.links.values().any(|link| link.archived && !link.disabled));
    compare(&mapped, &walked.truth());
    let stats = walked.server.stats();
    assert_eq!(stats.list_requests, 24);
    assert!(stats.connections_max <= 5 && stats.connections_refused == 0);
}

#[tokio::test]
async fn a_rough_day_changes_nothing_but_the_time_it_takes() {
    for seed in 1..=5 {
        let walked = Walked::account(Account::generate(2_345, seed), "rough").await;
        let pages = walked.pages().await.unwrap();
        let records: Vec<bytes::Bytes> = pages.iter().flat_map(|page| page.records.clone()).collect();
        let mapped = mapped(&records);
        compare(&mapped, &walked.truth());
        let known = walked.truth();
        let met = mapped.links.keys().chain(&mapped.filtered).chain(mapped.unreadable.keys());
        let unknown: Vec<&String> = met.filter(|id| !known.contains_key(*id)).collect();
        assert!(unknown.len() <= 1, "seed {seed}: at most the link deleted on the way: {unknown:?}");
        assert!(pages.iter().map(|page| page.retries).sum::<u32>() >= 5, "seed {seed}");
        assert!(!walked.server.stats().struck.is_empty());
        assert!(walked.clock.elapsed() > Duration::from_secs(1));
    }
}

#[tokio::test]
async fn records_are_the_bytes_received_and_the_same_position_gives_them_again() {
    let walked = Walked::links(250, "none").await;
    let first = walked.first().await.unwrap();
    let again = walked.first().await.unwrap();
    assert_eq!(first.records, again.records);
    assert_eq!(first.next, again.next);
    assert!(
        first.records.iter().all(|record| record.starts_with(b"{\"created_at\":") && record.ends_with(b"}"))
    );
    // One body, not a hundred copies: the records lie in it one behind the other.
    let distance = first.records[1].as_ptr() as usize - first.records[0].as_ptr() as usize;
    assert_eq!(distance, first.records[0].len() + 1);
}

#[tokio::test]
async fn f84_a_wrong_token_is_refused_and_shown_nowhere() {
    let walked = Walked::links(10, "none").await;
    let walked = Walked::with(walked.server, |options| options.token = Token::new("s3cr3t-wrong"));
    for error in [
        walked.bitly.partitions().await.unwrap_err(),
        walked.first().await.unwrap_err(),
        walked.bitly.survey().await.unwrap_err(),
    ] {
        assert!(matches!(error, SourceError::Unauthorized(_)), "{error:?}");
        assert!(!format!("{error} {error:?} {:?}", walked.bitly).contains("s3cr3t"), "{error}");
    }
    let empty = Walked::with(walked.server, |options| options.token = Token::new(" "));
    assert!(matches!(empty.bitly.partitions().await, Err(SourceError::Unauthorized(_))));
}

#[tokio::test]
async fn f84_one_401_in_the_middle_is_survived_and_a_token_that_ended_pauses_the_walk() {
    let walked = Walked::links(450, "401@3").await;
    assert_eq!(walked.records().await.len(), 450);
    let walked = Walked::links(450, "token-expires@3").await;
    assert!(matches!(walked.pages().await, Err(SourceError::Unauthorized(_))));
}

#[tokio::test]
async fn f84_the_walk_goes_on_with_the_token_that_replaces_an_ended_one() {
    let walked = Walked::links(250, "none").await;
    let secret = Token::new(walked.server.token());
    let walked = Walked::with(walked.server, |options| options.token = secret.clone());
    let first = walked.first().await.unwrap();
    let renewed = walked.server.renew_token();
    let error = walked.bitly.page(&walked.partition(), &first.next).await.unwrap_err();
    assert!(matches!(error, SourceError::Unauthorized(_)), "{error:?}");
    secret.replace(&Token::new(renewed));
    let second = walked.bitly.page(&walked.partition(), &first.next).await.unwrap();
    assert_eq!(second.records.len(), 100);
}

#[tokio::test]
async fn f83_a_token_replaced_during_a_wait_is_the_one_that_is_sent_after_it() {
    let walked = Walked::links(250, "429-bare@2").await;
    let secret = Token::new(walked.server.token());
    let server = Arc::new(walked.server);
    let surroundings = Surroundings {
        clock: Some(Arc::new(walked.clock)),
        chance: None,
        observe: Some(Arc::new({
            let (secret, server) = (secret.clone(), Arc::clone(&server));
            move |_: &str, _: Duration| secret.replace(&Token::new(server.renew_token()))
        })),
    };
    let mut options = BitlyOptions::new(secret);
    options.base_url = server.base_url();
    let bitly = Bitly::new(options, surroundings).unwrap();
    let partition = PartitionSpec {
        key: server.account().default_group().guid.clone(),
        expected: None,
        left_out: None,
        closing: false,
    };
    let first = bitly.page(&partition, &Position::Beginning).await.unwrap();
    let second = bitly.page(&partition, &first.next).await.unwrap();
    assert_eq!((second.records.len(), second.retries), (100, 1));
}

#[tokio::test]
async fn a_wrong_group_is_named_with_the_groups_there_are() {
    let walked = Walked::links(10, "none").await;
    let right = walked.partition().key;
    let inactive =
        walked.server.account().groups().iter().find(|group| !group.is_active).unwrap().guid.clone();
    let walked = walked.group("Bwrong00000");
    let partition =
        PartitionSpec { key: "Bwrong00000".to_owned(), expected: None, left_out: None, closing: false };
    for error in [
        walked.bitly.partitions().await.unwrap_err(),
        walked.bitly.page(&partition, &Position::Beginning).await.unwrap_err(),
    ] {
        let SourceError::Refused(text) = error else { panic!("{error:?}") };
        assert!(text.contains("Bwrong00000") && text.contains(&right) && text.contains(&inactive), "{text}");
    }
    let strange =
        PartitionSpec { key: "../user?x=#/é".to_owned(), expected: None, left_out: None, closing: false };
    assert!(matches!(walked.bitly.page(&strange, &Position::Beginning).await, Err(SourceError::Refused(_))));
    let walked = walked.group(&inactive);
    let SourceError::Refused(text) = walked.bitly.partitions().await.unwrap_err() else { panic!("refused") };
    assert!(text.contains(&inactive) && text.contains("not active"), "{text}");
}

#[tokio::test]
async fn all_active_groups_are_walked_in_a_fixed_order_and_one_can_be_chosen() {
    let shape = Shape { groups: 3, empty_group: true, ..Shape::default() };
    let walked = Walked::account(Account::shaped(1_000, 3, shape), "none").await;
    let groups = walked.bitly.partitions().await.unwrap();
    assert!(groups.is_sorted_by(|a, b| a.key < b.key));
    let (left, partitions): (Vec<_>, Vec<_>) = groups.iter().partition(|group| group.left_out.is_some());
    assert_eq!((partitions.len(), left.len()), (4, 1));
    let why = left[0].left_out.as_deref().unwrap();
    assert!(why.contains(&left[0].key) && why.ends_with("is not active"), "{why}");
    assert_eq!(mapped(&walked.records().await).links.len(), 1_000);
    let chosen = partitions[1].key.clone();
    let walked = walked.group(&format!(" {chosen} "));
    let groups = walked.bitly.partitions().await.unwrap();
    let (left, partitions): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.left_out.is_some());
    assert_eq!(partitions, [PartitionSpec { key: chosen, expected: None, left_out: None, closing: false }]);
    assert_eq!(
        left.iter().filter(|group| group.left_out.as_deref().unwrap().ends_with("was not chosen")).count(),
        3
    );
}

#[tokio::test]
async fn c27_pages_tell_how_many_links_the_group_has_where_bitly_says_so() {
    let totals = async |faults: &str| -> Vec<Option<i64>> {
        let walked = Walked::links(250, faults).await;
        walked.pages().await.unwrap().iter().map(|page| page.total).collect()
    };
    assert_eq!(totals("none").await, [None; 3]);
    assert_eq!(totals("total").await, [Some(250); 3]);
    assert_eq!(totals("total,total-off@3").await, [Some(250), Some(250), Some(260)]);
    assert_eq!(totals("total-off@1:-3,total-off@2:0").await, [Some(247), Some(0), None]);
    for nonsense in ["\"250\"", "-5e0", "2.5", "null", "18446744073709551615", "[250]"] {
        assert_eq!(totals(&format!("total-off@2:{nonsense}")).await, [None; 3], "{nonsense}");
    }
}

#[tokio::test]
async fn a_group_without_links_is_one_empty_page() {
    let shape = Shape { empty_group: true, ..Shape::default() };
    let walked = Walked::account(Account::shaped(10, 3, shape), "none").await;
    let guid = walked.server.account().empty_group().unwrap().guid.clone();
    let walked = walked.group(&guid);
    let pages = walked.pages().await.unwrap();
    assert_eq!((pages.len(), pages[0].records.len()), (1, 0));
}

#[tokio::test]
async fn b21_an_empty_page_with_a_cursor_is_not_the_end_and_a_full_one_may_be() {
    for (faults, pages) in [("trailing-empty-page", 3), ("none", 2)] {
        let walked = Walked::links(200, faults).await;
        let walk = walked.pages().await.unwrap();
        assert_eq!((walk.len(), walk.iter().map(|page| page.records.len()).sum::<usize>()), (pages, 200));
    }
}

#[tokio::test]
async fn b16_b18_a_cursor_that_stands_still_is_handed_on_and_never_taken_for_the_end() {
    let walked = Walked::links(450, "repeat-cursor@2").await;
    let first = walked.first().await.unwrap();
    let second = walked.bitly.page(&walked.partition(), &first.next).await.unwrap();
    assert_eq!(second.next, first.next);
    assert!(matches!(second.next, Position::At(_)));
}

#[tokio::test]
async fn what_is_no_page_is_asked_for_again() {
    for fault in [
        "html200",
        "empty-body",
        "empty-object",
        "truncated-json",
        "no-pagination",
        "no-cursor",
        "cut",
        "cut-chunked",
        "drop",
        "truncated-gzip",
        "500",
        "502",
        "503",
        "504",
        "html502",
        "error200",
        "gzip",
    ] {
        let walked = Walked::links(250, &format!("{fault}@2")).await;
        assert_eq!(walked.records().await.len(), 250, "{fault}");
    }
}

#[tokio::test]
async fn b2_f78_what_stays_no_page_is_an_error_and_never_the_end() {
    for (fault, said) in [
        ("empty-object", "without its list `links`"),
        ("empty-body", "an empty body"),
        ("html200", "HTML"),
        ("truncated-json", "cut"),
        ("no-pagination", "without `pagination`"),
        ("no-cursor", "search_after"),
        ("foreign-next:https://evil.example", "leads away"),
        ("huge:100000000", "more than"),
        ("redirect:https://evil.example/v4/", "evil.example"),
    ] {
        let (name, argument) =
            fault.split_once(':').map_or((fault, String::new()), |(name, text)| (name, format!(":{text}")));
        let walked = Walked::links(250, &format!("{name}@2x100{argument}")).await;
        let first = walked.first().await.unwrap();
        let error = walked.bitly.page(&walked.partition(), &first.next).await.unwrap_err();
        assert!(matches!(error, SourceError::Malformed(_)), "{fault}: {error:?}");
        assert!(error.to_string().contains(said), "{fault}: {error}");
    }
}

#[tokio::test]
async fn f76_a_source_that_keeps_failing_is_unavailable() {
    for fault in ["500", "502", "503", "504", "html502", "cut", "cut-chunked", "drop", "truncated-gzip"] {
        let walked = Walked::links(250, &format!("{fault}@1x100")).await;
        let error = walked.first().await.unwrap_err();
        assert!(matches!(error, SourceError::Unavailable(_)), "{fault}: {error:?}");
        assert_eq!(walked.server.stats().list_requests, 6, "{fault}");
    }
}

#[tokio::test]
async fn a22_a_limit_is_waited_for_whichever_status_it_has() {
    for (fault, least, most) in [
        ("429-bare@2", 60, 62),
        ("403-limit@2", 60, 62),
        ("error200@2", 60, 62),
        ("429@2:5", 5, 7),
        ("403-limit@2:5", 5, 7),
        ("429@2:date+90", 89, 100),
        ("429@2:epochms+90", 89, 100),
        ("429@2:99999999999999999999", 60, 62),
    ] {
        let walked = Walked::links(250, fault).await;
        assert_eq!(walked.records().await.len(), 250, "{fault}");
        let waited = walked.clock.elapsed().as_secs();
        assert!((least..=most).contains(&waited), "{fault}: {waited} s");
    }
}

#[tokio::test]
async fn a_limit_that_does_not_pass_puts_the_job_aside() {
    let walked = Walked::links(250, "429-bare@1x1000").await;
    let SourceError::WaitUntil { until, reason } = walked.first().await.unwrap_err() else {
        panic!("to wait")
    };
    assert!(reason.contains("RATE_LIMIT_EXCEEDED"), "{reason}");
    let now = walked.began.duration_since(UNIX_EPOCH).unwrap().as_secs() + walked.clock.elapsed().as_secs();
    assert!((now + 300..now + 3_600).contains(&(until.seconds() as u64)));
}

#[tokio::test]
async fn the_months_quota_is_waited_for_until_the_first_and_never_asked_again() {
    for fault in ["monthly@2", "api-usage@2"] {
        let walked = Walked::links(250, fault).await;
        let first = walked.first().await.unwrap();
        let error = walked.bitly.page(&walked.partition(), &first.next).await.unwrap_err();
        let SourceError::WaitUntil { until, reason } = error else { panic!("{error:?}") };
        let began = OffsetDateTime::from(walked.began);
        let first_of_next = began.date().replace_day(28).unwrap() + time::Duration::days(7);
        let first_of_next = first_of_next.replace_day(1).unwrap().midnight().assume_utc().unix_timestamp();
        assert!((first_of_next..first_of_next + 600).contains(&until.seconds()), "{until}");
        assert!(reason.contains("LIMIT_EXCEEDED"), "{reason}");
        assert_eq!(walked.server.stats().list_requests, 2, "{fault}");
        // The same cursor goes on next month.
        let second = walked.bitly.page(&walked.partition(), &first.next).await.unwrap();
        assert_eq!(second.records.len(), 100);
    }
}

#[tokio::test]
async fn f87_a_refusal_is_final_and_says_what_to_do() {
    for (fault, said) in [
        ("400", "BAD_REQUEST"),
        ("402", "CSV"),
        ("403", "may not"),
        ("404", "Bitly knows no group"),
        ("422", "UNPROCESSABLE_ENTITY"),
    ] {
        let walked = Walked::links(250, &format!("{fault}@2x100")).await;
        let first = walked.first().await.unwrap();
        let SourceError::Refused(text) =
            walked.bitly.page(&walked.partition(), &first.next).await.unwrap_err()
        else {
            panic!("{fault} is refused")
        };
        assert!(text.contains(said), "{fault}: {text}");
        assert_eq!(walked.server.stats().list_requests, 2, "{fault}");
    }
}

#[tokio::test]
async fn a8_a_cursor_that_is_no_longer_taken_is_told_apart_from_a_bad_request() {
    let walked = Walked::links(250, "none").await;
    let dead = Position::At(Cursor::new("ZmFrZQ").unwrap());
    let error = walked.bitly.page(&walked.partition(), &dead).await.unwrap_err();
    assert!(matches!(error, SourceError::CursorExpired(_)), "{error:?}");
    assert!(matches!(
        walked.bitly.page(&walked.partition(), &Position::End).await,
        Err(SourceError::Malformed(_))
    ));
}

#[tokio::test]
async fn a_link_added_while_walking_disturbs_nobody() {
    let walked = Walked::links(450, "none").await;
    let before: BTreeSet<String> = walked.truth().into_keys().collect();
    let first = walked.first().await.unwrap();
    let added = Mutation::Add {
        slug: None,
        destination: "https://www.example.com/new".to_owned(),
        title: None,
        tags: Vec::new(),
        behind: None,
    };
    walked.server.mutate(added).unwrap();
    let mut records = first.records;
    let mut at = first.next;
    while at != Position::End {
        let page = walked.bitly.page(&walked.partition(), &at).await.unwrap();
        records.extend(page.records);
        at = page.next;
    }
    let met: BTreeSet<String> = mapped(&records).links.into_keys().collect();
    assert_eq!(met, before);
}

#[tokio::test]
async fn the_pace_is_kept() {
    let walked = Walked::links(20_000, "none").await;
    let mut pages = 0;
    let mut at = Position::Beginning;
    while at != Position::End {
        let page = walked.bitly.page(&walked.partition(), &at).await.unwrap();
        at = page.next;
        pages += 1;
    }
    assert_eq!(pages, 200);
    let waited = walked.clock.elapsed().as_secs();
    assert!((60..=61).contains(&waited), "150 a minute: 200 pages take one, not {waited} s");
}

#[tokio::test]
async fn a12_a_survey_says_how_many_calls_an_import_needs() {
    for (count, faults) in [(2_345, "none"), (60_000, "none"), (20_000, "rough")] {
        let walked = Walked::links(count, faults).await;
        let survey = walked.bitly.survey().await.unwrap();
        assert_eq!(survey.login.as_deref(), Some("chauncey"));
        assert_eq!(survey.groups.len(), 2);
        let chosen = survey.groups.iter().find(|group| group.is_chosen).unwrap();
        assert_eq!(chosen.domains, ["go.example.com"]);
        let LinkCount::Estimated(links) = chosen.links else { panic!("{:?}", chosen.links) };
        assert!((count * 7 / 10..=count * 13 / 10).contains(&links), "{links} for {count}");
        assert_eq!(survey.calls.certainty, Certainty::Estimated);
        assert_eq!(survey.calls.calls, links.div_ceil(100) + 1);
        assert!(survey.monthly_limit.unwrap().left() > 49_000);
        assert_eq!(survey.list_limit.unwrap().limit, 1_500);
        assert!(walked.server.stats().list_requests <= 20);
    }
}

#[tokio::test]
async fn a_survey_counts_a_small_account_exactly_and_lists_what_is_left_out() {
    let shape = Shape { groups: 1, empty_group: true, ..Shape::default() };
    let walked = Walked::account(Account::shaped(70, 3, shape), "none").await;
    let survey = walked.bitly.survey().await.unwrap();
    assert_eq!((survey.calls.calls, survey.calls.certainty), (3, Certainty::Exact));
    let counts: BTreeSet<(bool, bool, String)> = survey
        .groups
        .iter()
        .map(|group| (group.is_active, group.is_chosen, format!("{:?}", group.links)))
        .collect();
    let expected = [(false, false, "Unknown"), (true, true, "Exact(0)"), (true, true, "Exact(70)")];
    assert_eq!(counts, expected.map(|(active, chosen, links)| (active, chosen, links.to_owned())).into());

    let left = survey.monthly_limit.unwrap().left();
    let forecast = imports::Forecast::from(survey);
    assert_eq!((forecast.calls, forecast.certainty), (3, imports::Certainty::Exact));
    assert_eq!((forecast.account.as_deref(), forecast.month.unwrap().left), (Some("chauncey"), left));
    let links: BTreeSet<(bool, Option<u64>)> =
        forecast.parts.iter().map(|part| (part.comes_over, part.links)).collect();
    assert_eq!(links, [(false, None), (true, Some(0)), (true, Some(70))].into());
}

#[tokio::test]
async fn a_survey_gives_what_there_is_where_the_list_is_refused() {
    let walked = Walked::links(250, "402@1x100").await;
    let survey = walked.bitly.survey().await.unwrap();
    assert_eq!(survey.calls.certainty, Certainty::AtLeast);
    assert!(survey.calls.to_string().starts_with("at least 2 API calls"), "{}", survey.calls);
}

#[test]
fn a_source_that_cannot_be_asked_is_refused_at_once() {
    for base_url in ["", "bitly", "ftp://api.example/v4", "https://user:pw@api.example/v4"] {
        let mut options = BitlyOptions::new(Token::new("t"));
        options.base_url = base_url.to_owned();
        let error = Bitly::new(options, Surroundings::default()).unwrap_err();
        assert!(matches!(error, SourceError::Refused(_)), "{base_url}");
        assert!(!error.to_string().contains("pw"), "{error}");
    }
}
