//! `crossdock import`: what goes wrong is named, loses nothing, and can be gone on with.

use crate::ground::{Database, Ground, PATIENCE, Process, Simulator, on_both};

fn bad_tokens_and_groups_are_named_and_an_empty_account_is_clean(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(200, &[]);
    let mut wrong = ground.import_command(&account, &[]);
    let done = crate::ground::Done::of(wrong.env("CROSSDOCK_SOURCE_TOKEN", "wrong-token-1234567890"));
    assert_eq!(done.code, 4, "{done:?}");
    done.says(&["the source refuses the credentials"]);
    assert!(!done.stderr.contains("wrong-token"), "{done:?}");

    let done = ground.import(&account, &["--group", "Bnobody"]);
    assert_eq!(done.code, 1, "{done:?}");
    done.says(&["Bnobody", account.group.as_str()]);

    let empty = Simulator::start(0, &[]);
    let done = ground.import(&empty, &["--group", &empty.group]);
    assert_eq!(done.code, 0, "{done:?}");
    let job = done.json();
    assert_eq!((job["outcome"].as_str(), job["source_links"].as_i64()), (Some("clean"), Some(0)));
    // Nothing of these attempts is in the way.
    let done = ground.import(&account, &[]);
    assert_eq!((done.code, done.json()["imported"].as_i64()), (0, Some(200)));
}

on_both!(bad_tokens_and_groups_are_named_and_an_empty_account_is_clean);

#[test]
fn domains_that_cannot_be_a_target_are_refused_before_anything_is_made() {
    let ground = Ground::new(Database::Sqlite);
    let account = Simulator::start(10, &[]);
    for (args, said) in [
        (&["--domain", "bit.ly"][..], "bit.ly belongs to Bitly; name a domain of your own"),
        (&["--domain", "not a host"], "--domain 'not a host'"),
        (&["--map-domain", "a.example.com"], "--map-domain 'a.example.com' is not of the form A=B"),
        (&["--map-domain", "a.example.com=bit.ly"], "bit.ly belongs to Bitly"),
        (&["--only-domain", "?"], "--only-domain '?'"),
        (&["--on-conflict", "maybe"], "suffix, skip, fail"),
    ] {
        let done = ground.import(&account, args);
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        done.says(&[said]);
    }
    assert_eq!(account.list_calls(), 0);
    assert_eq!(ground.json(&["domain", "list", "--json"]).as_array().map(Vec::len), Some(0));
}

#[test]
fn links_on_a_domain_of_the_vendor_fail_with_advice_until_they_are_mapped() {
    let ground = Ground::new(Database::Sqlite);
    let account = Simulator::start(200, &["--vendor-domain-percent", "20"]);
    let done = ground.import(&account, &[]);
    assert_eq!(done.code, 3, "{done:?}");
    let job = done.json();
    let failed = job["failed"].as_i64().expect("a number");
    assert!(failed > 0 && job["outcome"] == "partial", "{job}");
    let id = job["job"].as_str().expect("an id");
    let shown = ground.job(id);
    let entry = &shown["error_log"][0];
    assert_eq!(entry["reason"], "vendor_domain");
    assert!(
        entry["detail"].as_str().is_some_and(|detail| detail.contains("--map-domain bit.ly=")),
        "{entry}"
    );

    let rule = format!("bit.ly={}", account.domain);
    let done = ground.import(&account, &["--map-domain", &rule]);
    assert_eq!(done.code, 0, "{done:?}");
    let job = done.json();
    assert_eq!((job["imported"].as_i64(), job["failed"].as_i64()), (Some(failed), Some(0)), "{job}");
    assert_eq!(job["unchanged"].as_i64(), Some(200 - failed));
}

fn a_second_import_changes_nothing_and_the_token_is_nowhere(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(450, &[]);
    let first = ground.import(&account, &[]);
    let second = ground.import(&account, &[]);
    for done in [&first, &second] {
        assert_eq!(done.code, 0, "{done:?}");
        assert!(!done.stdout.contains(&account.token) && !done.stderr.contains(&account.token));
    }
    let (first, second) = (first.json(), second.json());
    assert_eq!(
        (first["imported"].as_i64(), first["slugs"].as_i64()),
        (Some(account.links), Some(account.slugs))
    );
    assert_eq!((second["unchanged"].as_i64(), second["imported"].as_i64()), (Some(account.links), Some(0)));
    for job in [&first, &second] {
        let id = job["job"].as_str().expect("an id");
        assert_eq!(ground.json(&["job", "verify", id, "--json"])["holds"], true);
    }
    ground.holds_nowhere(&account.token);
}

on_both!(a_second_import_changes_nothing_and_the_token_is_nowhere);

/// Runs into the fault, and then on with the same command from the checkpoint.
fn stops_and_goes_on(database: Database, faults: &str, said: &str) {
    let ground = Ground::new(database);
    let account = Simulator::start(700, &["--faults", faults]);
    let done = ground.import(&account, &[]);
    assert_eq!(done.code, 1, "{faults}: {done:?}");
    let job = done.json();
    let reason = job["reason"].as_str().unwrap_or_default();
    assert!(job["status"] == "failed" && reason.contains(said), "{faults}: {job}");
    let before = job["source_links"].as_i64().expect("a number");
    assert!(before > 0 && before < 700, "{faults}: what was fetched before is kept: {job}");
    let calls = account.list_calls();

    let done = ground.import(&account, &[]);
    done.says(&["going on with import", job["job"].as_str().expect("an id")]);
    assert_eq!(done.code, 0, "{faults}: {done:?}");
    let after = done.json();
    assert_eq!(after["job"], job["job"]);
    assert_eq!(
        (after["imported"].as_i64(), after["slugs"].as_i64()),
        (Some(700), Some(account.slugs)),
        "{after}"
    );
    let rest = usize::try_from(700 - before).expect("not negative").div_ceil(100);
    assert_eq!(account.list_calls() - calls, rest, "{faults}: only the pages that are left are asked for");
    let id = job["job"].as_str().expect("an id");
    assert_eq!(ground.json(&["job", "verify", id, "--json"])["holds"], true);
}

fn b16_b18_a_cursor_that_stands_still_is_an_error_and_the_job_goes_on(database: Database) {
    stops_and_goes_on(database, "repeat-cursor@6", "cursor");
}

on_both!(b16_b18_a_cursor_that_stands_still_is_an_error_and_the_job_goes_on);

fn b17_a_ring_of_cursors_is_an_error_and_the_job_goes_on(database: Database) {
    stops_and_goes_on(database, "ring@8", "cursor");
}

on_both!(b17_a_ring_of_cursors_is_an_error_and_the_job_goes_on);

#[test]
fn a_next_page_elsewhere_is_an_error_and_the_job_goes_on() {
    stops_and_goes_on(Database::Sqlite, "foreign-next@6", "leads away from Bitly");
}

#[test]
fn b2_an_empty_object_in_the_middle_is_an_error_that_keeps_the_cursor() {
    stops_and_goes_on(Database::Sqlite, "empty-object@6x6", "without its list");
}

#[test]
fn f78_html_with_status_200_is_an_error_that_keeps_the_cursor() {
    stops_and_goes_on(Database::Sqlite, "html200@6x6", "HTML");
}

#[test]
fn f76_pages_that_are_cut_once_are_asked_for_again() {
    let ground = Ground::new(Database::Sqlite);
    let account = Simulator::start(700, &["--faults", "cut@5,truncated-json@7,drop@9"]);
    let done = ground.import(&account, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let job = done.json();
    assert_eq!((job["imported"].as_i64(), job["duplicates"].as_i64()), (Some(700), Some(0)), "{job}");
    assert!(job["retries"].as_i64() >= Some(3), "{job}");
}

#[test]
fn a_token_that_is_withdrawn_on_the_way_makes_the_import_wait_for_another() {
    let ground = Ground::new(Database::Sqlite);
    let account = Simulator::start(700, &["--faults", "401@6x2"]);
    let done = ground.import(&account, &[]);
    assert_eq!(done.code, 4, "{done:?}");
    let job = done.json();
    assert_eq!(job["status"], "awaiting_token");
    let id = job["job"].as_str().expect("an id");
    let mut resume =
        ground.command(&["job", "resume", id, "--base-url", &account.url, "--pace", "none", "--json"]);
    let done = crate::ground::Done::of(resume.env("CROSSDOCK_SOURCE_TOKEN", &account.token));
    assert_eq!((done.code, done.json()["imported"].as_i64()), (0, Some(700)), "{done:?}");
}

fn a1_15_a_killed_import_goes_on_with_the_same_command(database: Database) {
    let ground = Ground::new(database);
    let account = Simulator::start(3_000, &["--latency-ms", "15"]);
    let mut import = Process::start(&mut ground.import_command(&account, &[]));
    let deadline = std::time::Instant::now() + PATIENCE;
    while account.pages_asked() < 10 {
        assert!(std::time::Instant::now() < deadline, "pages are asked for: {}", import.rest_of_talk());
    }
    import.kill();

    let done = ground.import(&account, &[]);
    done.says(&["going on with import"]);
    assert_eq!(done.code, 0, "{done:?}");
    let job = done.json();
    assert_eq!(
        (job["imported"].as_i64(), job["slugs"].as_i64()),
        (Some(3_000), Some(account.slugs)),
        "{job}"
    );
    assert_eq!(job["duplicates"].as_i64(), Some(0));
    // Twenty-nine pages behind the first, and at most those that were under way when it was killed.
    assert!(account.pages_asked() <= 29 + 2, "{} pages", account.pages_asked());
    let id = job["job"].as_str().expect("an id");
    assert_eq!(ground.json(&["job", "verify", id, "--json"])["holds"], true);
    assert_eq!(ground.json(&["job", "list", "--json"]).as_array().map(Vec::len), Some(1));
    ground.holds_nowhere(&account.token);
}

on_both!(a1_15_a_killed_import_goes_on_with_the_same_command);

#[test]
fn a_dry_run_writes_no_link_and_says_what_would_be() {
    let ground = Ground::new(Database::Sqlite);
    let account = Simulator::start(300, &["--faults", "missing-long-url@4"]);
    let dry = ground.import(&account, &["--dry-run"]);
    let real = ground.import(&account, &[]);
    assert_eq!((dry.code, real.code), (3, 3), "{dry:?} {real:?}");
    let (dry, real) = (dry.json(), real.json());
    for key in ["source_links", "slugs", "imported", "failed", "skipped", "filtered"] {
        assert_eq!(dry[key], real[key], "{key}");
    }
    assert_eq!(real["imported"].as_i64(), Some(299), "the dry run had written nothing: {real}");
}
