//! Runs that take Studio's text: pulls, merges, and what is asked for first.

use super::*;

/// A run that has come to a script which Studio changed.
fn changed_in_studio(mode: SyncMode, base: &str, agreement: &mut Agreement) -> (Run, Step) {
    *agreement = agreed(&[(ID, base)]);
    run(mode, None, vec![differs(ID, STUDIO)], [script(ID, DISK)], agreement)
}

fn fetch(run: &mut Run, text: &str, agreement: &mut Agreement) -> Step {
    let step = run.fetched(&ID.into(), Ok(text.into()), agreement);
    journalled(run, step, agreement)
}

#[test]
fn a_pull_fetches_the_text_writes_the_file_and_then_both_agree() {
    let mut agreement = Agreement::default();
    let (mut run, step) = changed_in_studio(SyncMode::Standard, DISK, &mut agreement);
    assert_eq!(step, Step::Fetch(vec![ID.into()]));
    let step = run.fetched(&ID.into(), Ok(STUDIO.into()), &mut agreement);
    assert!(matches!(&step, Step::Check(writes) if writes.len() == 1), "{step:?}");
    let step = run.checked(vec![None], &agreement);
    let Step::Begin(draft) = step else { panic!("{step:?}") };
    let line = &draft.entry.changes[0];
    assert_eq!(
        (line.disk, line.studio),
        ((Some(hash(DISK)), Some(hash(STUDIO))), (Some(hash(STUDIO)), Some(hash(STUDIO))))
    );
    assert!(draft.texts.contains(&DISK.to_owned()) && draft.texts.contains(&STUDIO.to_owned()), "{draft:?}");
    let step = run.begun(Begun::Entry(4, draft.entry), &mut agreement);
    let write = FileWrite::Replace { path: "src/Script1.luau".into(), base: hash(DISK), text: Some(STUDIO.into()) };
    assert_eq!(step, Step::Write(vec![write]));
    assert_eq!(agreement.base(ID), Some(hash(DISK)), "not before it is written");
    let step = run.written(vec![Wrote::Done(Some(hash(STUDIO)))], &mut agreement);
    assert_eq!(agreement.base(ID), Some(hash(STUDIO)));
    let receipt = receipt(journalled(&mut run, step, &mut agreement));
    assert_eq!((receipt.status, receipt.pulled, receipt.journal), (SyncStatus::Success, 1, Some(4)));
    assert_eq!(receipt.changes[0].disk_hash, Some(hash(STUDIO)));
}

#[test]
fn a_file_that_changed_meanwhile_is_left_alone_and_listed() {
    let mut agreement = Agreement::default();
    let (mut run, _) = changed_in_studio(SyncMode::Standard, DISK, &mut agreement);
    fetch(&mut run, STUDIO, &mut agreement);
    let step = run.written(vec![Wrote::MovedOn("it has changed".into())], &mut agreement);
    let receipt = receipt(journalled(&mut run, step, &mut agreement));
    assert_eq!((receipt.status, receipt.failed), (SyncStatus::Error, 1));
    assert_eq!(receipt.changes[0].result, ChangeResult::MovedOn);
    assert_eq!(agreement.base(ID), Some(hash(DISK)));
}

#[test]
fn a_text_that_changed_in_studio_meanwhile_is_left_alone() {
    let mut agreement = Agreement::default();
    let (mut run, _) = changed_in_studio(SyncMode::Standard, DISK, &mut agreement);
    let receipt = receipt(fetch(&mut run, "typed meanwhile", &mut agreement));
    assert_eq!((receipt.status, receipt.changes[0].result), (SyncStatus::Rejected, ChangeResult::MovedOn));
}

#[test]
fn a_clean_merge_goes_to_both_sides_under_both_guards() {
    let mut agreement = Agreement::default();
    let (mut run, step) = changed_in_studio(SyncMode::Standard, BASE, &mut agreement);
    assert_eq!(step, Step::Fetch(vec![ID.into()]));
    let step = fetch(&mut run, STUDIO, &mut agreement);
    assert_eq!(step, Step::Merge(vec![MergeJob { base: hash(BASE), disk: DISK.into(), studio: STUDIO.into() }]));
    let step = run.merged(vec![Merged::Clean("both".into())], &mut agreement);
    let op = PlanOp::SetSource { id: ID, source: "both".into(), expect: hash(STUDIO) };
    assert_eq!(ops(journalled(&mut run, step, &mut agreement)), [op]);
    let step = run.applied(&[result(ID, OpStatus::Done, Some("both"))], &mut agreement);
    let write = FileWrite::Replace { path: "src/Script1.luau".into(), base: hash(DISK), text: Some("both".into()) };
    assert_eq!(step, Step::Write(vec![write]));
    let step = run.written(vec![Wrote::Done(Some(hash("both")))], &mut agreement);
    let receipt = receipt(journalled(&mut run, step, &mut agreement));
    assert_eq!((receipt.status, receipt.merged, agreement.base(ID)), (SyncStatus::Success, 1, Some(hash("both"))));
}

#[test]
fn a_merge_that_studio_refuses_is_not_written_to_the_file() {
    let mut agreement = Agreement::default();
    let (mut run, _) = changed_in_studio(SyncMode::Standard, BASE, &mut agreement);
    fetch(&mut run, STUDIO, &mut agreement);
    let step = run.merged(vec![Merged::Clean("both".into())], &mut agreement);
    journalled(&mut run, step, &mut agreement);
    let step = applied(&mut run, &[result(ID, OpStatus::Guard, Some("typed"))], &mut agreement);
    let receipt = receipt(step);
    assert_eq!((receipt.status, receipt.changes[0].result), (SyncStatus::Error, ChangeResult::Guard));
    assert_eq!(agreement.base(ID), Some(hash(BASE)));
}

#[test]
fn a_conflict_shows_its_lines_and_changes_nothing() {
    for mode in [SyncMode::Standard, SyncMode::Dryrun, SyncMode::Fastfail] {
        let mut agreement = Agreement::default();
        let (mut run, _) = changed_in_studio(mode, BASE, &mut agreement);
        fetch(&mut run, STUDIO, &mut agreement);
        let long = "x".repeat(5000);
        let hunk = crate::core::merge::Hunk { line: 3, base: "b".into(), disk: long, studio: "s".into() };
        let receipt = receipt(run.merged(vec![Merged::Conflict(vec![hunk; 9])], &mut agreement));
        let change = &receipt.changes[0];
        assert_eq!((receipt.unresolved, change.direction, change.conflict.len()), (1, Direction::Unresolved, 4));
        assert!(change.conflict[0].disk.len() < 500);
        assert_eq!(agreement.base(ID), Some(hash(BASE)));
    }
}

#[test]
fn a_dry_run_says_what_it_would_pull_without_fetching_it() {
    let mut agreement = Agreement::default();
    let (_, step) = changed_in_studio(SyncMode::Dryrun, DISK, &mut agreement);
    let receipt = receipt(step);
    assert_eq!((receipt.status, receipt.changes[0].direction), (SyncStatus::Dryrun, Direction::Pull));
}

#[test]
fn what_cannot_be_written_is_left_to_somebody_else_before_anything_is_noted() {
    for (problem, result) in [
        (Wrote::Failed("it is read-only".into()), ChangeResult::Unresolved),
        (Wrote::MovedOn("it is newer".into()), ChangeResult::MovedOn),
    ] {
        for mode in [SyncMode::Standard, SyncMode::Dryrun] {
            let mut agreement = agreed(&[(ID, DISK), (NodeId(2), DISK)]);
            let facts = vec![differs(ID, STUDIO), differs(NodeId(2), DISK)];
            let views = [script(ID, DISK), script(NodeId(2), STUDIO)];
            let (mut run, step) = run(SyncMode::Standard, None, facts, views, &mut agreement);
            run.args.mode = mode;
            assert_eq!(step, Step::Fetch(vec![ID.into()]));
            run.fetched(&ID.into(), Ok(STUDIO.into()), &mut agreement);
            match run.checked(vec![Some(problem.clone())], &agreement) {
                Step::Begin(draft) if mode == SyncMode::Standard => {
                    assert_eq!(draft.entry.changes.len(), 1, "the other one goes on");
                    assert_eq!((run.decisions[0].change.result, run.decisions[0].is_resolved()), (result, false));
                }
                step => assert_eq!(receipt(step).changes[0].result, result),
            }
        }
    }
}

#[test]
fn texts_are_asked_for_a_few_at_a_time() {
    let ids: Vec<NodeId> = (1..=20).map(NodeId).collect();
    let texts: Vec<(NodeId, &str)> = ids.iter().map(|id| (*id, DISK)).collect();
    let mut agreement = agreed(&texts);
    let facts = ids.iter().map(|id| differs(*id, STUDIO)).collect();
    let (mut run, step) = run(SyncMode::Standard, None, facts, ids.iter().map(|id| script(*id, DISK)), &mut agreement);
    let Step::Fetch(mut asked) = step else { panic!("{step:?}") };
    assert_eq!(asked.len(), FETCHES);
    for count in 1..=20 {
        let of = asked.remove(0);
        match run.fetched(&of, Ok(STUDIO.into()), &mut agreement) {
            Step::Fetch(more) => asked.extend(more),
            Step::Check(_) => assert_eq!(count, 20),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(asked, []);
}

#[test]
fn a_text_that_only_studio_has_is_fetched_before_it_is_overwritten() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let (mut started, _) = Run::start("run-1".into(), SyncArgs::default(), true);
    started.caught_up(7, &agreement);
    started.compared(Some(7), vec![differs(ID, BASE)], &mut agreement);
    let step = started.looked(HashMap::from([script(ID, DISK)]), &mut agreement);
    assert!(matches!(step, Step::Begin(_)));
    let step = started.begun(Begun::Lacks(vec![hash(BASE)]), &mut agreement);
    assert_eq!(step, Step::Fetch(vec![ID.into()]));
    let step = started.fetched(&ID.into(), Ok(BASE.into()), &mut agreement);
    let Step::Begin(draft) = step else { panic!("{step:?}") };
    assert!(draft.texts.contains(&BASE.to_owned()));
    let step = started.begun(Begun::Lacks(vec![hash(BASE)]), &mut agreement);
    assert_eq!(receipt(step).status, SyncStatus::Rejected, "it cannot be kept, so it is left alone");
}

#[test]
fn without_a_journal_nothing_is_changed() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let (mut started, _) = Run::start("run-1".into(), SyncArgs::default(), true);
    started.caught_up(7, &agreement);
    started.compared(Some(7), vec![differs(ID, BASE)], &mut agreement);
    started.looked(HashMap::from([script(ID, DISK)]), &mut agreement);
    let receipt = receipt(started.begun(Begun::Failed("disk full".into()), &mut agreement));
    assert_eq!(receipt.status, SyncStatus::Error);
    assert!(receipt.message.expect("it says why").contains("disk full"));
}

#[test]
fn overrides_decide_with_guards_and_are_never_dropped() {
    let (push, pull) = (OverrideDirection::Push, OverrideDirection::Pull);
    let guarded = |direction, hash: Option<TextHash>| Override {
        studio_hash: hash.map(|hash| hash.to_string()),
        ..Override::new(ID, direction)
    };
    let props = Some(serde_json::Map::from_iter([("Name".to_owned(), "a".into())]));
    let cases = [
        (guarded(pull, Some(hash(STUDIO))), Some(Direction::Pull)),
        (guarded(push, None), Some(Direction::Push)),
        (guarded(pull, Some(hash(BASE))), None),
        (Override { expected_properties: props, ..guarded(push, None) }, None),
        (Override::new(NodeId(77), push), None),
        (Override::new(TempId::from("x4"), push), None),
    ];
    for (wish, expected) in cases {
        for mode in [SyncMode::Standard, SyncMode::Fastfail] {
            let mut agreement = Agreement::default();
            let args = SyncArgs { mode, overrides: vec![wish.clone()], ..SyncArgs::default() };
            let (mut run, step) = run_with(args, vec![differs(ID, STUDIO)], [script(ID, DISK)], &mut agreement);
            let Some(direction) = expected else {
                let receipt = receipt(step);
                assert_eq!((receipt.rejected.len(), receipt.pushed, receipt.pulled), (1, 0, 0), "{wish:?}");
                assert_eq!(receipt.rejected[0].id, wish.id.to_string());
                continue;
            };
            assert_eq!(step, Step::Fetch(vec![ID.into()]), "Studio's text goes to the file, or into the journal");
            let step = run.fetched(&ID.into(), Ok(STUDIO.into()), &mut agreement);
            let step = match step {
                Step::Check(writes) => run.checked(vec![None; writes.len()], &agreement),
                step => step,
            };
            let Step::Begin(draft) = step else { panic!("{step:?}") };
            assert_eq!(draft.entry.changes[0].direction, direction);
            assert!(draft.texts.contains(&STUDIO.to_owned()) && draft.texts.contains(&DISK.to_owned()));
        }
    }
}

#[test]
fn a_resolution_is_about_one_script_and_needs_both_guards() {
    let texts = (Some(hash(DISK)), Some(hash(STUDIO)));
    let cases = [(texts, true), ((None, texts.1), false), ((texts.0, None), false), ((texts.1, texts.0), false)];
    for ((disk, studio), holds) in cases {
        let take = Forced::Text("settled".into());
        let resolution = Some(Resolution { id: ID.into(), take, disk, studio });
        let args = SyncArgs { resolution, mode: SyncMode::Fastfail, ..SyncArgs::default() };
        let mut agreement = agreed(&[(ID, BASE), (NodeId(2), BASE)]);
        let facts = vec![differs(ID, STUDIO), differs(NodeId(2), BASE), extra("Mine")];
        let views = [script(ID, DISK), script(NodeId(2), DISK)];
        let (mut run, step) = run_with(args, facts, views, &mut agreement);
        if !holds {
            assert!(!matches!(step, Step::Begin(_) | Step::Apply { .. }), "{step:?}");
            continue;
        }
        assert_eq!(step, Step::Fetch(vec![ID.into()]));
        let op = PlanOp::SetSource { id: ID, source: "settled".into(), expect: hash(STUDIO) };
        assert_eq!(ops(fetch(&mut run, STUDIO, &mut agreement)), [op]);
        let step = run.applied(&[result(ID, OpStatus::Done, Some("settled"))], &mut agreement);
        let (path, text) = ("src/Script1.luau".to_owned(), Some("settled".to_owned()));
        assert_eq!(step, Step::Write(vec![FileWrite::Replace { path, base: hash(DISK), text }]));
        run.written(vec![Wrote::Done(Some(hash("settled")))], &mut agreement);
        assert_eq!(agreement.base(ID), Some(hash("settled")));
    }
}
