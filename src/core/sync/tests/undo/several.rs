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
