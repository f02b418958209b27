//! The engine as it is. Each search ends when there is no state left that it has not seen; their number is asserted, so
//! that whoever changes the model sees how much of it there is now.

use crossdock_model::Engine;
use crossdock_model::source::Source;
use stateright::{Checker, Expectation, Model};

/// The last page has two records, whose chunk can be halved.
const LARGER: Source = Source { pages: [1, 1, 2], pages_per_segment: 2, chunk_records: 2 };

/// Searches everything; `dangers` says whether what only two fetchers and two workers can meet must be met.
fn search(engine: Engine, dangers: bool) -> usize {
    let checker = engine.checker().threads(2).spawn_bfs().join();
    let properties = checker.model().properties();
    let kept = properties.iter().filter(|property| property.expectation == Expectation::Always);
    kept.for_each(|property| checker.assert_no_discovery(property.name));
    if dangers {
        checker.assert_properties();
    }
    checker.assert_any_discovery("the job completes");
    checker.unique_state_count()
}

#[test]
fn two_fetchers_and_two_workers_keep_every_promise() {
    assert_eq!(search(Engine::default(), true), 326_475);
}

#[test]
fn two_fetchers_keep_every_promise_where_runs_end_at_any_page() {
    let engine = Engine { workers: 1, run_ends: true, ..Engine::default() };
    assert_eq!(search(engine, false), 167_046);
}

#[test]
fn two_workers_keep_every_promise_where_runs_end_at_any_page() {
    let engine = Engine { source: LARGER, fetchers: 1, run_ends: true, ..Engine::default() };
    assert_eq!(search(engine, false), 227_951);
}
