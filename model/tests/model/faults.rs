//! The engine with a fault. A property that no fault can break would say nothing.

use crossdock_model::fetcher::What;
use crossdock_model::properties::{
    CLEANED, COMPLETED, CONSERVED, CURSOR_AHEAD, FENCED, RECORD_AHEAD, RESUMABLE, TWICE, UNBROKEN,
};
use crossdock_model::{Action, Engine, Fault};
use stateright::{Checker, HasDiscoveries, Model};

const DEPTH_MAX: usize = 30;

/// The shortest way to a state in which `broken` does not hold, printed. The checker goes on for a while after its first
/// find and keeps the last one, hence the depths one by one.
#[expect(clippy::print_stdout, reason = "the path is there to be read")]
fn steps(fault: Fault, broken: &'static str) -> Vec<Action> {
    let search = |depth| {
        let checker = Engine::with(fault).checker().target_max_depth(depth);
        checker.finish_when(HasDiscoveries::AnyOf([broken].into())).spawn_bfs().join().discovery(broken)
    };
    let steps = (1..DEPTH_MAX).find_map(search).expect("the fault is found").into_actions();
    println!("{fault:?} breaks: {broken}");
    steps.iter().for_each(|step| println!("  {step:?}"));
    steps
}

#[test]
fn without_the_epoch_an_old_fetcher_commits() {
    let steps = steps(Fault::NoEpochCheck, FENCED);
    let epochs = steps.iter().filter(|step| matches!(step, Action::Take(_) | Action::FlushTails)).count();
    assert!(epochs >= 2, "somebody took over");
    assert!(steps.iter().any(|step| matches!(step, Action::Commit(..) | Action::PageLands)));
}

#[test]
fn without_the_epoch_a_record_comes_into_two_chunks() {
    let steps = steps(Fault::NoEpochCheck, TWICE);
    assert!(steps.iter().filter(|step| matches!(step, Action::Claim(_))).count() >= 2);
}

#[test]
fn a_cursor_committed_before_its_page_runs_ahead() {
    let steps = steps(Fault::CursorFirst, CURSOR_AHEAD);
    assert!(steps.iter().any(|step| matches!(step, Action::Commit(_, What::Page))));
}

#[test]
fn a_chunk_settled_whatever_its_state_is_written_twice() {
    let steps = steps(Fault::UnconditionalSettle, TWICE);
    assert!(steps.iter().filter(|step| matches!(step, Action::Claim(_))).count() >= 2);
}

/// The position refuses a page that is sent again; a tail, which moves no position, is what goes through twice.
#[test]
fn a_commit_sent_again_makes_a_chunk_twice() {
    let steps = steps(Fault::Resend, TWICE);
    assert!(steps.iter().any(|step| matches!(step, Action::CommitUnanswered(_, What::Tail))));
}

#[test]
fn a_segment_cleaned_before_it_is_settled_loses_records() {
    let steps = steps(Fault::EarlyClean, CLEANED);
    assert!(steps.contains(&Action::Clean));
}

#[test]
fn the_other_properties_are_broken_by_a_fault_too() {
    let cases = [
        (RECORD_AHEAD, Fault::CursorFirst),
        (CONSERVED, Fault::Resend),
        (UNBROKEN, Fault::EarlyClean),
        (RESUMABLE, Fault::EarlyClean),
        (COMPLETED, Fault::UnconditionalSettle),
    ];
    for (property, fault) in cases {
        let engine = Engine { fetchers: 1, ..Engine::with(fault) };
        let found = HasDiscoveries::AnyOf([property].into());
        let checker = engine.checker().finish_when(found).spawn_bfs().join();
        println!("{fault:?} breaks: {property}, after {} states", checker.unique_state_count());
        checker.assert_any_discovery(property);
    }
}
