//! How a question ends other than by an answer, and answers that are none.

use super::*;

#[test]
fn a_studio_that_returns_is_shown_the_question_again() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(manual(false));
    let (id, first) = review_of(&out, asked.link);
    let out = asked.rig.close(asked.link);
    assert_eq!(out.settled(), [], "it may come back");
    let (reply, _) = asked.answer(&id, Face::Page, all(Choice::Accept));
    assert!(matches!(reply, ReviewReply::Over(_)), "nothing can be carried out now: {reply:?}");
    let (link, out) = asked.rig.try_link(&with(shows("a"), json!({"serverId": SERVER, "lastN": 99})));
    assert_eq!(review_of(&out, link), (id.clone(), first));
    asked.link = link;
    let facts = json!(asked.facts());
    asked.rig.load(link, 7, vec![script(1, AFTER), script(2, AFTER)], &facts);
    let (reply, out) = asked.answer(&id, Face::Studio, all(Choice::Accept));
    assert_eq!(reply, ReviewReply::Taken);
    let out = asked.compare(out);
    let out = asked.done(&out, 1, AFTER);
    assert_eq!(receipt(&out, caller).pushed, 1);
}

#[test]
fn a_studio_that_leaves_ends_the_question() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(manual(true));
    let (id, _) = review_of(&out, asked.link);
    let out = asked.rig.say(asked.link, &json!({"type": "bye", "reason": "closed"}));
    assert_eq!(out.code(caller), ErrorCode::StudioLeft);
    assert!(out.error(caller).message.contains("did not run"), "{:?}", out.error(caller));
    assert!(matches!(asked.answer(&id, Face::Page, all(Choice::Accept)).0, ReviewReply::Over(_)));
    let states = asked.states();
    assert_eq!((states.len(), states[0].state.as_str()), (1, "over"));
}

#[test]
fn an_answer_that_makes_no_sense_counts_for_nothing() {
    let mut asked = Asked::new(&shows("a"));
    let (_, out) = asked.sync(manual(false));
    let (id, _) = review_of(&out, asked.link);
    let choice = |id: &str, choice: &str| json!({"id": id, "choice": choice});
    let (one, two) = (NodeId(1).to_string(), NodeId(2).to_string());
    let wrong = [
        (json!([]), "give `choices`"),
        (json!([choice("x9", "push")]), "choices[0].id: nothing that is shown has the id x9"),
        (json!([choice(&one, "push"), choice(&one, "pull")]), "choices[1].id: "),
        (json!([choice(&one, "push"), choice(&two, "accept")]), "choices[1].choice: nothing is proposed for Script2"),
    ];
    for (choices, expected) in wrong {
        let out = asked.rig.say(asked.link, &json!({"type": "reviewed", "reviewId": id, "choices": choices}));
        let frame = out.one(asked.link);
        assert_eq!((&frame["type"], &frame["ok"]), (&json!("reviewOutcome"), &json!(false)));
        assert!(frame["text"].as_str().expect("a text").starts_with(expected), "{expected}: {frame}");
    }
    let out = asked.rig.say(asked.link, &json!({"type": "reviewed", "reviewId": "nobody's", "all": "push"}));
    assert_eq!(out.one(asked.link)["type"], "reviewClosed");
    assert_eq!(asked.states()[0].state, "waiting", "it still waits for a good answer");
}

#[test]
fn the_windows_text_is_the_files_as_it_is_now() {
    let mut asked = Asked::new(&shows("a"));
    let (_, out) = asked.sync(manual(false));
    let (id, _) = review_of(&out, asked.link);
    let wanted = |of: NodeId| json!({"type": "reviewText", "reviewId": id, "id": of});
    let out = asked.rig.say(asked.link, &wanted(NodeId(2)));
    let read = Effect::ReadFile { link: asked.link, review: id.clone(), id: NodeId(2) };
    assert_eq!(out.0, [read]);
    let event = Event::FileRead { link: asked.link, review: id.clone(), id: NodeId(2), source: Some(AFTER.into()) };
    assert_eq!(asked.rig.event(event).one(asked.link)["source"], AFTER);
    let out = asked.rig.say(asked.link, &wanted(NodeId(77)));
    assert_eq!(out.one(asked.link).get("source"), None, "nothing is read that is not shown");
}

#[test]
fn a_manual_sync_called_as_an_operation_has_one_outcome() {
    let mut asked = Asked::new(&shows("a"));
    let call = |patience| Call {
        studio: None,
        patience,
        ask: Ask::Sync(manual(false)),
        operation: Some(Claim { id: "op".into(), tool: "sync".into(), args_hash: "x".into() }),
    };
    let (first, second) = (CallerId(901), CallerId(902));
    asked.rig.event(Event::Call { caller: first, call: call(PATIENCE) });
    asked.rig.event(Event::Call { caller: second, call: call(PATIENCE) });
    let intention = Ok(crate::core::operations::Intention::Fresh);
    let out = asked.rig.event(Event::Intended { operation: "op".into(), intention });
    let out = asked.compare(out);
    let (id, _) = review_of(&out, asked.link);
    let (_, out) = asked.answer(&id, Face::Studio, all(Choice::Accept));
    let out = asked.compare(out);
    let out = asked.done(&out, 1, AFTER);
    for caller in [first, second] {
        assert_eq!(receipt(&out, caller).pushed, 1);
    }
    let changes = receipt(&out, first).changes;
    assert_eq!(changes[1].result, ChangeResult::Unresolved, "nothing was proposed, so nothing was accepted");
}
