//! A run that asks, and the run that follows the answer.

use super::{extras::*, *};
use crate::core::review::{ChangeChoice, Choice, Review, ReviewAnswer, Seen};

const NEW: NodeId = NodeId(7);

/// What a manual run asks about.
fn asked(facts: Vec<Fact>, views: Vec<(NodeId, NodeView)>, agreement: &mut Agreement) -> (Review, SyncArgs) {
    let args = SyncArgs { mode: SyncMode::Manual, ..SyncArgs::default() };
    let (run, step) = run_with(args, facts, views, agreement);
    let Step::Ask { receipt, again } = step else { panic!("it asks: {step:?}") };
    let seen: Seen = run.seen().clone();
    let review = Review { id: "r".into(), studio: "s".into(), standing: false, changes: receipt.changes, seen };
    (review, *again)
}

/// The run that follows an answer.
fn answered(
    (review, again): (&Review, &SyncArgs),
    choices: &[(OpId, Choice)],
    facts: Vec<Fact>,
    views: Vec<(NodeId, NodeView)>,
    agreement: &mut Agreement,
) -> (Run, Step) {
    let choices = choices.iter().map(|(id, choice)| ChangeChoice { id: id.clone(), choice: *choice }).collect();
    let answer = ReviewAnswer { choices, all: None };
    let chosen = review.chosen(&answer).expect("it makes sense");
    run_with(again.clone().answered(chosen, review.seen.clone()), facts, views, agreement)
}

/// A file that was renamed: the old instance is left in Studio, and the new node is missing there.
fn renamed() -> (Vec<Fact>, Vec<(NodeId, NodeView)>, Agreement) {
    let agreement = lost(&[("Old", BASE)]);
    (vec![Fact { parent: Some(NodeId(0)), ..missing(NEW) }, stray("Old", BASE)], vec![script(NEW, BASE)], agreement)
}

#[test]
fn a_rename_is_one_change_whatever_is_chosen() {
    let (facts, views, agreement) = renamed();
    let (review, again) = asked(facts.clone(), views.clone(), &mut agreement.clone());
    let [change] = &review.changes[..] else { panic!("one change: {:?}", review.changes) };
    assert_eq!((change.patch_type, change.id), (PatchType::Rename, Some(NEW)));
    let carry_out = |choice| {
        let mut agreement = agreement.clone();
        let (facts, views) = (facts.clone(), views.clone());
        answered((&review, &again), &[(NEW.into(), choice)], facts, views, &mut agreement).1
    };
    for choice in [Choice::Accept, Choice::Push] {
        assert!(matches!(&ops(carry_out(choice))[..], [PlanOp::Rename { .. }]), "{choice:?}");
    }
    let receipt = receipt(carry_out(Choice::Skip));
    assert_eq!((receipt.status, receipt.changes.len(), receipt.unresolved), (SyncStatus::Rejected, 1, 1));
    assert_eq!(receipt.changes[0].reason.as_deref(), Some("left alone, as was chosen"));
}

#[test]
fn a_rename_of_which_one_half_is_another_by_now_is_left_alone() {
    let (facts, views, mut agreement) = renamed();
    let (review, again) = asked(facts.clone(), views.clone(), &mut agreement);
    let facts = vec![facts[0].clone(), stray("Old", STUDIO)];
    let (_, step) = answered((&review, &again), &[(NEW.into(), Choice::Accept)], facts, views, &mut agreement);
    let receipt = receipt(step);
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::Rejected, 2), "{receipt:?}");
}

#[test]
fn what_is_accepted_is_what_was_proposed() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let (facts, views) = (vec![differs(ID, BASE)], vec![script(ID, DISK)]);
    let (review, again) = asked(facts.clone(), views.clone(), &mut agreement);
    assert_eq!(review.changes[0].direction, Direction::Push);
    // Meanwhile both had the file's text, and Studio went back: now it would be a pull.
    agreement.agree(ID, hash(DISK));
    let (_, step) = answered((&review, &again), &[(ID.into(), Choice::Accept)], facts, views, &mut agreement);
    let receipt = receipt(step);
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::Rejected, 1), "{receipt:?}");
    assert!(receipt.changes[0].reason.as_deref().expect("it says why").contains("changed since"), "{receipt:?}");
}

#[test]
fn an_override_of_the_caller_is_a_proposal() {
    let mut agreement = Agreement::default();
    let (facts, views) = (vec![differs(ID, STUDIO)], vec![script(ID, DISK)]);
    let overrides = vec![Override::new(ID, OverrideDirection::Push)];
    let args = SyncArgs { mode: SyncMode::Manual, overrides, ..SyncArgs::default() };
    let (run, step) = run_with(args, facts.clone(), views.clone(), &mut agreement);
    let Step::Ask { receipt, again } = step else { panic!("it asks: {step:?}") };
    let (changes, seen) = (receipt.changes, run.seen().clone());
    let review = Review { id: "r".into(), studio: "s".into(), standing: false, changes, seen };
    assert_eq!(review.changes[0].direction, Direction::Push);
    let (mut run, step) = answered((&review, &again), &[(ID.into(), Choice::Accept)], facts, views, &mut agreement);
    assert_eq!(step, Step::Fetch(vec![ID.into()]), "nobody keeps Studio's text");
    let step = run.fetched(&ID.into(), Ok(STUDIO.into()), &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    assert_eq!(ops(step).len(), 1);
}
