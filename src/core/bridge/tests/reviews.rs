//! Reviews: a person is asked, the first answer counts, and what was not shown is left alone.

mod ends;
mod standing;

use super::*;
use crate::core::{
    ids::{ReviewId, RunId},
    protocol::SyncMode,
    review::{Choice, Face, ReviewAnswer, ReviewAsk, ReviewReply, ReviewState},
    sync::{ChangeResult, NodeView, Receipt, Undo},
};

const BEFORE: &str = "return 1";
const AFTER: &str = "return 2";
const THEIRS: &str = "return 3";

/// A Studio whose scripts 1 and 2 are agreed on. Both files were changed, and script 2 in Studio too.
struct Asked {
    rig: Rig,
    link: LinkId,
    /// What Studio has of script 1 and 2, and the files.
    studio: [&'static str; 2],
    disk: [&'static str; 2],
}

fn shows(session: &str) -> Value {
    with(hello(session, 11), json!({ "reviews": true }))
}

impl Asked {
    fn new(hello: &Value) -> Self {
        let mut rig = Rig::new();
        let link = rig.link(hello);
        rig.load(link, 5, vec![script(1, BEFORE), script(2, BEFORE)], &json!([]));
        rig.event(patch(6, script(1, AFTER)));
        rig.event(patch(7, script(2, AFTER)));
        Self { rig, link, studio: [BEFORE, THEIRS], disk: [AFTER, AFTER] }
    }

    fn args(mode: SyncMode) -> SyncArgs {
        SyncArgs { mode, ..SyncArgs::default() }
    }

    /// A call of `sync`, up to where the run asks or goes on.
    fn sync(&mut self, args: SyncArgs) -> (CallerId, Out) {
        let (caller, out) = self.rig.call(None, PATIENCE, Ask::Sync(args));
        (caller, self.compare(out))
    }

    /// Let the run that `out` begins compare.
    fn compare(&mut self, out: Out) -> Out {
        let runs = out.0.iter().filter_map(|effect| match effect {
            Effect::CatchUp { run, .. } => Some(run.clone()),
            _ => None,
        });
        let [run] = &runs.collect::<Vec<RunId>>()[..] else { panic!("no run begins: {out:?}") };
        let out = self.rig.event(Event::CaughtUp { run: run.clone(), result: Ok(7) });
        let compare = out.of_type(self.link, "sync")[0]["requestId"].clone();
        let result = json!({"requestId": compare, "status": "success", "facts": self.facts()});
        let out = self.rig.say(self.link, &result);
        if !out.0.iter().any(|effect| matches!(effect, Effect::Look { .. })) {
            return out;
        }
        let out = self.rig.event(Event::Looked { run: run.clone(), views: self.views() });
        self.fetch_and_merge(run, out)
    }

    fn facts(&self) -> Vec<Value> {
        let fact = |at: usize| {
            json!({"kind": "differs", "id": NodeId(at as u128 + 1), "path": "x", "className": "ModuleScript",
                   "studioHash": TextHash::of(self.studio[at])})
        };
        (0..2).filter(|at| self.studio[*at] != self.disk[*at]).map(fact).collect()
    }

    /// Studio's texts come, and merges conflict.
    fn fetch_and_merge(&mut self, run: &RunId, mut out: Out) -> Out {
        for request in out.of_type(self.link, "getScript") {
            let at = if request["id"] == json!(NodeId(1)) { 0 } else { 1 };
            let source = self.studio[at];
            let script = json!({"requestId": request["requestId"], "status": "success", "source": source,
                "studioHash": TextHash::of(source)});
            out.0.extend(self.rig.say(self.link, &script).0);
        }
        let merges = out.0.iter().any(|effect| matches!(effect, Effect::Work { work: Work::Merge(_), .. }));
        if merges {
            let merged = crate::core::sync::Merged::Conflict(vec![]);
            let done = Worked::Merged(vec![merged]);
            out.0.extend(self.rig.event(Event::Worked { run: run.clone(), done }).0);
        }
        out
    }

    fn views(&self) -> std::collections::HashMap<NodeId, NodeView> {
        let view = |at: usize| NodeView {
            parent: Some(NodeId(0)),
            path: format!("Script{}", at + 1),
            class_name: "ModuleScript".into(),
            fs_path: Some(format!("src/Script{}.luau", at + 1)),
            source: Some(self.disk[at].into()),
            hash: Some(TextHash::of(self.disk[at])),
            subtree: None,
            properties: Default::default(),
        };
        (0..2).map(|at| (NodeId(at as u128 + 1), view(at))).collect()
    }

    fn ask(&mut self, ask: ReviewAsk) -> (Answer, Out) {
        let (caller, out) = self.rig.call(None, PATIENCE, Ask::Review(ask));
        (out.outcome(caller).clone().expect("answered at once"), out)
    }

    fn answer(&mut self, review: &ReviewId, by: Face, answer: ReviewAnswer) -> (ReviewReply, Out) {
        match self.ask(ReviewAsk::Answer { review: review.clone(), by, answer }) {
            (Answer::Reviewed(reply), out) => (reply, out),
            other => panic!("not a reply: {other:?}"),
        }
    }

    fn states(&mut self) -> Vec<ReviewState> {
        match self.ask(ReviewAsk::List).0 {
            Answer::Reviews(states) => states,
            other => panic!("not reviews: {other:?}"),
        }
    }

    fn done(&mut self, out: &Out, id: u128, text: &str) -> Out {
        let plan = out.of_type(self.link, "plan")[0]["requestId"].clone();
        let results = json!([{"id": NodeId(id), "status": "done", "hash": TextHash::of(text)}]);
        self.rig.say(self.link, &json!({"requestId": plan, "status": "success", "results": results}))
    }
}

fn review_of(out: &Out, link: LinkId) -> (ReviewId, Value) {
    let frames = out.of_type(link, "review");
    let frame = frames.last().unwrap_or_else(|| panic!("nothing is asked: {out:?}")).clone();
    (frame["reviewId"].as_str().expect("an id").into(), frame)
}

fn receipt(out: &Out, caller: CallerId) -> Receipt {
    match out.outcome(caller) {
        Ok(Answer::Receipt(receipt)) => receipt.clone(),
        other => panic!("not a receipt: {other:?}"),
    }
}

fn all(choice: Choice) -> ReviewAnswer {
    ReviewAnswer { choices: Vec::new(), all: Some(choice) }
}

fn manual(asks: bool) -> SyncArgs {
    SyncArgs { asks, ..Asked::args(SyncMode::Manual) }
}

fn reasons(receipt: &Receipt) -> Vec<&str> {
    receipt.changes.iter().filter_map(|change| change.reason.as_deref()).collect()
}

#[test]
fn a_manual_sync_asks_in_studio_and_carries_out_what_is_chosen() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(manual(false));
    assert_eq!(out.settled(), [], "the caller waits");
    let told = out.0.iter().any(|effect| {
        matches!(effect, Effect::Progress { message: Some(text), .. }
        if text == "a person is asked in Studio (2 changes)")
    });
    assert!(told, "and hears why: {out:?}");
    let (id, frame) = review_of(&out, asked.link);
    assert_eq!((&frame["more"], frame.get("standing")), (&json!(0), None));
    assert_eq!(frame["changes"][0]["direction"], "push");
    assert_eq!(
        (&frame["changes"][1]["direction"], &frame["changes"][1]["path"]),
        (&json!("unresolved"), &json!("Script2"))
    );
    assert_eq!(out.of_type(asked.link, "plan"), [] as [Value; 0]);

    let choices = json!([{"id": NodeId(1), "choice": "accept"}, {"id": NodeId(2), "choice": "skip"}]);
    let out = asked.rig.say(asked.link, &json!({"type": "reviewed", "reviewId": id, "choices": choices}));
    assert_eq!(out.of_type(asked.link, "reviewClosed")[0]["reason"], "answered in Studio");
    let out = asked.compare(out);
    let out = asked.done(&out, 1, AFTER);
    let receipt = receipt(&out, caller);
    assert_eq!((receipt.status, receipt.pushed, receipt.unresolved), (SyncStatus::Partial, 1, 1));
    let outcome = &out.of_type(asked.link, "reviewOutcome")[0];
    assert_eq!((&outcome["ok"], &outcome["reviewId"]), (&json!(true), &json!(id)));
    assert!(outcome["text"].as_str().expect("a text").starts_with("1 pushed, 1 left alone"), "{outcome}");
}

#[test]
fn a_push_and_a_pull_by_choice_win_over_what_the_table_says() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(manual(false));
    let (id, _) = review_of(&out, asked.link);
    let choices = json!([{"id": NodeId(1), "choice": "pull"}, {"id": NodeId(2), "choice": "push"}]);
    let out = asked.rig.say(asked.link, &json!({"type": "reviewed", "reviewId": id, "choices": choices}));
    let out = asked.compare(out);
    let out = asked.done(&out, 2, AFTER);
    let [Effect::Work { run, work: Work::Write(writes) }] = &out.0[1..] else { panic!("{out:?}") };
    assert_eq!(writes.len(), 1);
    let wrote = vec![crate::core::sync::Wrote::Done(Some(TextHash::of(BEFORE)))];
    let out = asked.rig.event(Event::Worked { run: run.clone(), done: Worked::Written(wrote) });
    let receipt = receipt(&out, caller);
    assert_eq!((receipt.status, receipt.pushed, receipt.pulled), (SyncStatus::Success, 1, 1));
}

#[test]
fn the_first_answer_counts_and_the_second_hears_who_gave_it() {
    let mut asked = Asked::new(&shows("a"));
    asked.states();
    let (_, out) = asked.sync(manual(true));
    let offered = out.0.iter().filter(|effect| matches!(effect, Effect::Offer { .. })).count();
    assert_eq!(offered, 1, "the agent's client is asked too");
    let (id, _) = review_of(&out, asked.link);
    let (reply, out) = asked.answer(&id, Face::Page, all(Choice::Accept));
    assert_eq!(reply, ReviewReply::Taken);
    assert!(out.0.iter().any(|effect| matches!(effect, Effect::Withdraw { .. })), "the agent's form goes");
    assert_eq!(out.of_type(asked.link, "reviewClosed")[0]["reason"], "answered on the page");
    let (second, _) = asked.answer(&id, Face::Agent, all(Choice::Skip));
    assert_eq!(second, ReviewReply::Over("answered on the page".into()));
    let out = asked.rig.say(asked.link, &json!({"type": "reviewed", "reviewId": id, "all": "skip"}));
    assert_eq!(out.one(asked.link)["reason"], "answered on the page");
}

#[test]
fn nobody_to_ask_is_a_rejection_at_once() {
    let mut asked = Asked::new(&hello("a", 11));
    let (caller, out) = asked.sync(manual(false));
    let told = receipt(&out, caller);
    assert_eq!((told.status, told.changes.len()), (SyncStatus::Rejected, 2));
    assert!(told.message.as_deref().expect("it says why").contains("nobody can be asked"), "{told:?}");
    // A page that looks for reviews shows them to somebody, for a while.
    asked.states();
    let (_, out) = asked.sync(manual(false));
    assert_eq!(out.settled(), []);
    asked.rig.now += seconds(61);
    let (caller, out) = asked.sync(manual(false));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Rejected, "the page is closed by now");
}

#[test]
fn no_answer_in_time_is_a_rejection_before_the_caller_gives_up() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(manual(false));
    let (id, _) = review_of(&out, asked.link);
    let out = asked.rig.pass(PATIENCE);
    let receipt = receipt(&out, caller);
    assert_eq!((receipt.status, receipt.pushed), (SyncStatus::Rejected, 0));
    assert_eq!(receipt.message.as_deref(), Some("nobody answered in time, so nothing was changed"));
    assert_eq!(out.of_type(asked.link, "reviewClosed")[0]["reason"], "nobody answered in time");
    let (late, _) = asked.answer(&id, Face::Page, all(Choice::Accept));
    assert_eq!(late, ReviewReply::Over("nobody answered in time".into()));
}

#[test]
fn a_caller_that_goes_away_takes_the_question_with_it() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(manual(false));
    let (id, _) = review_of(&out, asked.link);
    let out = asked.rig.event(Event::Abandon { caller });
    assert_eq!(out.code(caller), ErrorCode::Cancelled);
    assert_eq!(out.of_type(asked.link, "reviewClosed").len(), 1);
    let (late, out) = asked.answer(&id, Face::Page, all(Choice::Accept));
    assert!(matches!(late, ReviewReply::Over(_)), "{late:?}");
    assert_eq!(out.frames(asked.link), [] as [Value; 0]);
}

#[test]
fn declining_changes_nothing_and_closing_the_form_leaves_it_to_others() {
    let mut asked = Asked::new(&shows("a"));
    let (caller, out) = asked.sync(manual(true));
    let (id, _) = review_of(&out, asked.link);
    let (_, out) = asked.ask(ReviewAsk::Withdraw(id.clone()));
    assert_eq!(out.frames(asked.link), [] as [Value; 0], "Studio can still answer");
    let (reply, out) = asked.answer(&id, Face::Studio, all(Choice::Skip));
    assert_eq!(reply, ReviewReply::Taken);
    let receipt1 = receipt(&out, caller);
    assert_eq!(receipt1.status, SyncStatus::Rejected);
    assert_eq!(receipt1.message.as_deref(), Some("declined in Studio, so nothing was changed"));

    let mut alone = Asked::new(&hello("a", 11));
    let (caller, out) = alone.sync(manual(true));
    let offered = out.0.iter().find_map(|effect| match effect {
        Effect::Offer { review, .. } => Some(review.id.clone()),
        _ => None,
    });
    let (_, out) = alone.ask(ReviewAsk::Withdraw(offered.expect("the agent is asked")));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Rejected, "nobody is left who could answer");
}

#[test]
fn what_changed_since_it_was_shown_is_left_alone() {
    for (studio, disk) in [(["return 1", "new"], [AFTER, AFTER]), ([BEFORE, THEIRS], [AFTER, "new"])] {
        let mut asked = Asked::new(&shows("a"));
        let (caller, out) = asked.sync(manual(false));
        let (id, _) = review_of(&out, asked.link);
        (asked.studio, asked.disk) = (studio, disk);
        let (_, out) = asked.answer(&id, Face::Studio, all(Choice::Push));
        let out = asked.compare(out);
        let plan = &out.of_type(asked.link, "plan")[0];
        assert_eq!(plan["ops"].as_array().expect("steps").len(), 1, "only what is as it was: {plan}");
        let out = asked.done(&out, 1, AFTER);
        let receipt = receipt(&out, caller);
        assert_eq!((receipt.status, receipt.pushed, receipt.unresolved), (SyncStatus::Partial, 1, 1));
        assert_eq!(reasons(&receipt), ["it changed since it was shown, so it was left alone"]);
    }
}

#[test]
fn what_came_up_after_the_list_was_shown_is_left_alone() {
    let mut asked = Asked::new(&shows("a"));
    asked.studio = [BEFORE, AFTER];
    let (caller, out) = asked.sync(manual(false));
    let (id, frame) = review_of(&out, asked.link);
    assert_eq!(frame["changes"].as_array().expect("changes").len(), 1);
    asked.studio = [BEFORE, BEFORE];
    let (_, out) = asked.answer(&id, Face::Studio, all(Choice::Accept));
    let out = asked.compare(out);
    let out = asked.done(&out, 1, AFTER);
    let receipt = receipt(&out, caller);
    assert_eq!((receipt.pushed, receipt.unresolved), (1, 1), "{receipt:?}");
    assert_eq!(reasons(&receipt), ["it came up after the list was shown, so it was left alone"]);
}
