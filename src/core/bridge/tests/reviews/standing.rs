//! What runs have left stands for a choice, and nobody waits for it.

use super::*;

#[test]
fn what_a_standard_sync_leaves_stands_for_a_choice_and_is_carried_out_by_itself() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(Asked::args(SyncMode::Standard));
    let out = asked.done(&out, 1, AFTER);
    asked.studio[0] = AFTER;
    assert_eq!(receipt(&out, caller).status, SyncStatus::Partial, "it waits for nobody");
    let (id, frame) = review_of(&out, asked.link);
    assert_eq!((&frame["standing"], frame["changes"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    let Answer::Status { studios, .. } = asked.rig.status() else { panic!("not a status") };
    assert!(studios[0].review.as_deref().is_some_and(|text| text.starts_with("1 change")), "{:?}", studios[0].review);

    let out = asked.rig.say(asked.link, &json!({"type": "reviewed", "reviewId": id, "all": "push"}));
    let out = asked.compare(out);
    let busy = asked.answer(&id, Face::Page, all(Choice::Push)).0;
    assert_eq!(busy, ReviewReply::Over("an earlier answer is being carried out".into()));
    let out = asked.done(&out, 2, AFTER);
    let outcome = &out.of_type(asked.link, "reviewOutcome")[0];
    assert_eq!((&outcome["ok"], &outcome["text"]), (&json!(true), &json!("1 pushed")));
    assert_eq!(out.of_type(asked.link, "reviewClosed")[0]["reason"], "nothing is left to be chosen");
    let Answer::Status { studios, .. } = asked.rig.status() else { panic!("not a status") };
    assert_eq!(studios[0].review, None);
}

#[test]
fn a_standing_review_keeps_what_was_not_chosen_as_it_was() {
    let mut asked = Asked::new(&shows("a"));
    asked.studio = [THEIRS, THEIRS];
    let (caller, out) = asked.sync(Asked::args(SyncMode::Standard));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Rejected);
    let (id, frame) = review_of(&out, asked.link);
    assert_eq!(frame["changes"].as_array().map(Vec::len), Some(2));
    let before = frame["changes"][1].clone();
    let choices = json!([{"id": NodeId(1), "choice": "push"}]);
    let out = asked.rig.say(asked.link, &json!({"type": "reviewed", "reviewId": id, "choices": choices}));
    let out = asked.compare(out);
    let out = asked.done(&out, 1, AFTER);
    let (again, frame) = review_of(&out, asked.link);
    assert_eq!((again, frame["changes"].as_array()), (id, Some(&vec![before])));
}

#[test]
fn a_sync_that_leaves_nothing_empties_the_standing_review() {
    let mut asked = Asked::new(&shows("a"));
    let (_, out) = asked.sync(Asked::args(SyncMode::Dryrun));
    let (_, frame) = review_of(&out, asked.link);
    assert_eq!(frame["changes"].as_array().map(Vec::len), Some(1), "what is resolved needs no choice");
    asked.studio = [AFTER, AFTER];
    let (caller, out) = asked.sync(Asked::args(SyncMode::Standard));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Empty);
    assert_eq!(out.of_type(asked.link, "reviewClosed").len(), 1);
}

#[test]
fn an_undo_that_finds_nothing_leaves_the_standing_review_alone() {
    let mut asked = Asked::new(&shows("a"));
    asked.studio = [THEIRS, THEIRS];
    asked.sync(Asked::args(SyncMode::Standard));
    let (_, out) = asked.sync(SyncArgs { undo: Some(Undo::default()), ..SyncArgs::default() });
    let recalls = out.0.iter().find_map(|effect| match effect {
        Effect::Work { run, work: Work::Recall { .. } } => Some(run.clone()),
        _ => None,
    });
    let done = Worked::Recalled(Err("the journal has nothing".into()));
    let out = asked.rig.event(Event::Worked { run: recalls.expect("it reads the journal"), done });
    assert_eq!(out.of_type(asked.link, "reviewClosed"), [] as [Value; 0]);
    let Answer::Status { studios, .. } = asked.rig.status() else { panic!("not a status") };
    assert!(studios[0].review.as_deref().is_some_and(|text| text.starts_with("2 changes")), "{:?}", studios[0].review);
}

#[test]
fn a_standing_review_ends_with_its_studio() {
    let mut asked = Asked::new(&shows("a"));
    let (_, out) = asked.sync(Asked::args(SyncMode::Dryrun));
    let (id, _) = review_of(&out, asked.link);
    asked.rig.say(asked.link, &json!({"type": "bye", "reason": "the plugin is unloading"}));
    assert!(asked.rig.bridge.reviews.standing.is_empty(), "it is not kept for a Studio that has left");
    let reply = asked.answer(&id, Face::Page, all(Choice::Push)).0;
    assert_eq!(reply, ReviewReply::Over("its Studio has left".into()));
}
