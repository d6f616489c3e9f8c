//! Several changes taken back at once, and files that were saved since.

use super::*;

fn lost(name: &str, text: &str) -> Line {
    Line {
        base: Some(Some(hash(text))),
        studio: (Some(hash(text)), None),
        ..line(Direction::Push, PatchType::Remove, module(name))
    }
}

#[test]
fn several_deletions_come_back_each_with_its_own_text_and_file() {
    let mut agreement = tree(&[]);
    let lines = vec![lost("One", BASE), lost("Two", DISK)];
    let (mut run, step) = undo(lines, vec![], [root()], &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let made: Vec<NewNode> = ops(step)
        .into_iter()
        .map(|op| match op {
            PlanOp::Add { node, .. } => node,
            other => panic!("{other:?}"),
        })
        .collect();
    let [two, one] = &made[..] else { panic!("{made:?}") };
    assert_ne!(one.id, two.id, "each has an id of its own");
    let done = |node: &NewNode| result(node.id, OpStatus::Done, node.source.as_deref());
    let step = applied(&mut run, &[done(two), done(one)], &mut agreement);
    assert!(matches!(&step, Step::Write(writes) if writes.len() == 2), "{step:?}");
}

#[test]
fn what_was_made_in_studio_goes_though_its_file_was_saved_since_and_the_journal_has_that_text() {
    let mut agreement = tree(&[(ID, "Script1", DISK)]);
    let saved = "return 'saved since'";
    let (mut run, step) = undo(vec![made()], vec![differs(ID, DISK)], [root(), script(ID, saved)], &mut agreement);
    let Step::Begin(draft) = &step else { panic!("{step:?}") };
    assert!(draft.texts.contains(&saved.to_owned()), "what the entry names it has: {draft:?}");
    let step = journalled(&mut run, step, &mut agreement);
    assert!(matches!(&ops(step)[..], [PlanOp::Remove { .. }]));
}

#[test]
fn what_no_journal_can_keep_is_left_alone_and_the_run_ends() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let (mut run, _) = Run::start("run-1".into(), SyncArgs::default(), true);
    run.caught_up(7, &agreement);
    run.compared(Some(7), vec![differs(ID, BASE)], &mut agreement);
    let step = run.looked(HashMap::from([script(ID, DISK)]), &mut agreement);
    assert!(matches!(step, Step::Begin(_)), "{step:?}");
    let step = run.begun(Begun::Lacks(vec![hash(DISK)]), &mut agreement);
    assert_eq!(receipt(step).status, SyncStatus::Rejected);
}
