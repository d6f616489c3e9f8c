//! The Studio link on the wire, frame by frame. `tests/fixtures/wire` holds at least one frame of
//! every type and variant, named `<direction>_<type>[_variant].json`; both sides read them.

#[path = "wire/malformed.rs"]
mod malformed;
#[path = "wire/rewritten.rs"]
mod rewritten;

use std::{collections::BTreeSet, fmt::Debug, path::Path};

use rojo_mcp::core::{
    ids::{LogicalId, NodeId, OpId, RequestId, ReviewId, TempId},
    protocol::{
        AckDisposition, CancelReason, Expected, Fact, FactKind, Hello, HelloLevel1, Notice, OpResult, OpStatus,
        PatchOp, PlanOp, PluginFrame, RejectCode, Request, RequestBody, Role, ServerFrame, SyncMode,
    },
    review::{ChangeChoice, Choice, ReviewAnswer},
    targets::Target,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A name for each variant of an enum, and the list of all names. A new variant does not compile
/// until it stands here, and then has no frame until there is a file of it.
macro_rules! variants {
    ($(fn $name:ident, $all:ident: $type:ty { $($pattern:pat => $label:literal),+ $(,)? })+) => {
        $(
            fn $name(value: &$type) -> &'static str {
                match value { $($pattern => $label),+ }
            }
            const $all: &[&str] = &[$($label),+];
        )+
        const EVERYTHING: &[&[&str]] = &[$($all),+];
    };
}

variants! {
    fn notice, NOTICES: Notice {
        Notice::Welcome(_) => "welcome",
        Notice::Heartbeat { .. } => "heartbeat",
        Notice::Tree(_) => "tree",
        Notice::Patch(_) => "patch",
        Notice::PlanPart { .. } => "planPart",
        Notice::Cancel { .. } => "cancel",
        Notice::Ack { .. } => "ack",
        Notice::Attached { .. } => "attached",
        Notice::Status { .. } => "status",
        Notice::Edited { .. } => "edited",
        Notice::Review(_) => "review",
        Notice::ReviewClosed { .. } => "reviewClosed",
        Notice::ReviewText { .. } => "reviewText",
        Notice::ReviewOutcome { .. } => "reviewOutcome",
        Notice::Rejected { .. } => "rejected",
        Notice::Bye { .. } => "bye",
    }
    fn body, BODIES: RequestBody {
        RequestBody::Sync { .. } => "sync",
        RequestBody::GetScript { .. } => "getScript",
        RequestBody::GetInstance { .. } => "getInstance",
        RequestBody::Plan { .. } => "plan",
        RequestBody::Tool { .. } => "tool",
    }
    fn plan_op, PLAN_OPS: PlanOp {
        PlanOp::SetSource { .. } => "op setSource",
        PlanOp::SetProperties { .. } => "op setProperties",
        PlanOp::Add { .. } => "op add",
        PlanOp::Remove { .. } => "op remove",
        PlanOp::Rename { .. } => "op rename",
    }
    fn patch_op, PATCH_OPS: PatchOp {
        PatchOp::Put { .. } => "op put",
        PatchOp::Drop { .. } => "op drop",
    }
    fn reject_code, REJECT_CODES: RejectCode {
        RejectCode::HelloTimeout => "code hello_timeout",
        RejectCode::BadHello => "code bad_hello",
        RejectCode::PlaceNotServed => "code place_not_served",
        RejectCode::DuplicateSession => "code duplicate_session",
        RejectCode::Unsupported => "code unsupported",
        RejectCode::TooManyStudios => "code too_many_studios",
    }
    fn disposition, DISPOSITIONS: AckDisposition {
        AckDisposition::Accepted => "disposition accepted",
        AckDisposition::AlreadySettled => "disposition already_settled",
        AckDisposition::Unknown => "disposition unknown",
    }
    fn cancel_reason, CANCEL_REASONS: CancelReason {
        CancelReason::Timeout => "reason timeout",
        CancelReason::Aborted => "reason aborted",
        CancelReason::Shutdown => "reason shutdown",
    }
    fn sync_mode, SYNC_MODES: SyncMode {
        SyncMode::Standard => "mode standard",
        SyncMode::Manual => "mode manual",
        SyncMode::Fastfail => "mode fastfail",
        SyncMode::Dryrun => "mode dryrun",
    }
    fn assigned_role, ASSIGNED_ROLES: Role {
        Role::Edit => "assigned edit",
        Role::Server => "assigned server",
        Role::Client => "assigned client",
    }
    fn plugin_frame, PLUGIN_FRAMES: PluginFrame {
        PluginFrame::Hello(_) => "hello",
        PluginFrame::RobloxLog { .. } => "roblox_log",
        PluginFrame::Attach { .. } => "attach",
        PluginFrame::Detach { .. } => "detach",
        PluginFrame::Result(_) => "result",
        PluginFrame::Cancelled { .. } => "cancelled",
        PluginFrame::StillRunning { .. } => "stillRunning",
        PluginFrame::Taken { .. } => "taken",
        PluginFrame::TreeReady { .. } => "treeReady",
        PluginFrame::Edit { .. } => "edit",
        PluginFrame::Facts { .. } => "facts",
        PluginFrame::Reviewed { .. } => "reviewed",
        PluginFrame::ReviewText { .. } => "reviewText",
        PluginFrame::Progress { .. } => "progress",
        PluginFrame::Alive => "alive",
        PluginFrame::Bye { .. } => "bye",
        PluginFrame::Unknown { .. } => "unknown",
    }
    fn role, ROLES: Role {
        Role::Edit => "role edit",
        Role::Server => "role server",
        Role::Client => "role client",
    }
    fn choice, CHOICES: Choice {
        Choice::Accept => "choice accept",
        Choice::Push => "choice push",
        Choice::Pull => "choice pull",
        Choice::Skip => "choice skip",
    }
    fn fact_kind, FACT_KINDS: FactKind {
        FactKind::Differs => "kind differs",
        FactKind::Missing => "kind missing",
        FactKind::Extra => "kind extra",
    }
    fn op_id, OP_IDS: OpId {
        OpId::Node(_) => "result of a node",
        OpId::Temp(_) => "result of an instance that only Studio has",
    }
    fn op_status, OP_STATUSES: OpStatus {
        OpStatus::Done => "status done",
        OpStatus::Guard => "status guard",
        OpStatus::Failed => "status failed",
        OpStatus::Skipped => "status skipped",
    }
}

/// One file.
struct Golden {
    /// Without `.json`.
    name: String,
    text: String,
    value: Value,
}

/// The files of one direction.
fn golden(direction: &str) -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire");
    let mut all: Vec<Golden> = std::fs::read_dir(&folder)
        .expect("the folder of frames")
        .map(|entry| entry.expect("a file of it").path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".json")?.strip_prefix(direction)?.to_owned();
            let text = std::fs::read_to_string(&path).expect("a text file");
            let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            Some(Golden { name, text, value })
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn one(name: &str) -> PluginFrame {
    let all = golden("from_plugin_");
    let file = all.iter().find(|file| file.name == name).expect("there is such a file");
    PluginFrame::parse(&file.text).expect("it can be read")
}

fn round_trip<T: Serialize + DeserializeOwned + Debug>(name: &str, value: &Value) -> T {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(&serde_json::to_value(&read).expect("it is JSON"), value, "{name} does not come out as it went in");
    read
}

/// `name` is `kind` or begins with it.
fn assert_named(name: &str, kind: &str) {
    let rest = name.strip_prefix(kind);
    assert!(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_')), "{name} holds a {kind}");
}

#[test]
fn frames_to_the_plugin_are_read_and_written_as_they_stand() {
    for Golden { name, value, .. } in golden("to_plugin_") {
        let kind = match round_trip::<ServerFrame>(&name, &value) {
            ServerFrame::Notice(frame) => notice(&frame),
            ServerFrame::Request(request) => body(&request.body),
        };
        assert_named(&name, kind);
    }
}

#[test]
fn frames_from_the_plugin_are_read_as_what_they_are_named_after() {
    for Golden { name, text, .. } in golden("from_plugin_") {
        let frame = PluginFrame::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_named(&name, plugin_frame(&frame));
    }
}

#[test]
fn files_are_pretty_printed() {
    for Golden { name, text, .. } in golden("to_plugin_").into_iter().chain(golden("from_plugin_")) {
        assert!(text.starts_with("{\n  \"") && text.ends_with("\n}\n"), "{name}");
    }
}

#[test]
fn there_is_a_file_of_every_variant() {
    let mut seen = BTreeSet::new();
    for file in golden("to_plugin_") {
        match serde_json::from_value(file.value).expect("read by another test") {
            ServerFrame::Notice(frame) => see_notice(&frame, &mut seen),
            ServerFrame::Request(request) => see_request(&request, &mut seen),
        }
    }
    for file in golden("from_plugin_") {
        see_plugin_frame(&PluginFrame::parse(&file.text).expect("read by another test"), &file, &mut seen);
    }
    let lacking: Vec<&str> = EVERYTHING.concat().into_iter().filter(|label| !seen.contains(label)).collect();
    assert_eq!(lacking, [] as [&str; 0], "no file in tests/fixtures/wire holds these");
}

fn see_notice(frame: &Notice, seen: &mut BTreeSet<&'static str>) {
    seen.insert(notice(frame));
    match frame {
        Notice::Welcome(welcome) => seen.extend([assigned_role(&welcome.assigned_role)]),
        Notice::Patch(patch) => seen.extend(patch.ops.iter().map(patch_op)),
        Notice::PlanPart { ops, .. } => seen.extend(ops.iter().map(plan_op)),
        Notice::Cancel { reason, .. } => seen.extend([cancel_reason(reason)]),
        Notice::Ack { disposition: word, .. } => seen.extend([disposition(word)]),
        Notice::Rejected { code, .. } => seen.extend([reject_code(code)]),
        Notice::Heartbeat { .. }
        | Notice::Tree(_)
        | Notice::Edited { .. }
        | Notice::Review(_)
        | Notice::ReviewClosed { .. }
        | Notice::ReviewText { .. }
        | Notice::ReviewOutcome { .. }
        | Notice::Attached { .. }
        | Notice::Status { .. }
        | Notice::Bye { .. } => {}
    }
}

fn see_request(request: &Request, seen: &mut BTreeSet<&'static str>) {
    seen.insert(body(&request.body));
    match &request.body {
        RequestBody::Sync { mode, .. } => seen.extend([sync_mode(mode)]),
        RequestBody::Plan { ops, .. } => seen.extend(ops.iter().map(plan_op)),
        RequestBody::GetScript { .. } | RequestBody::GetInstance { .. } | RequestBody::Tool { .. } => {}
    }
}

/// Facts and results must come out as they went in, too.
fn see_plugin_frame(frame: &PluginFrame, file: &Golden, seen: &mut BTreeSet<&'static str>) {
    seen.insert(plugin_frame(frame));
    if let PluginFrame::Hello(hello) = frame {
        seen.extend(hello.level1.iter().map(|hello| role(&hello.role)));
    }
    if let PluginFrame::Reviewed { answer, .. } = frame {
        seen.extend(answer.choices.iter().map(|one| choice(&one.choice)));
        seen.extend(answer.all.iter().map(choice));
    }
    if let Some(facts) = file.value.get("facts") {
        seen.extend(round_trip::<Vec<Fact>>(&file.name, facts).iter().map(|fact| fact_kind(&fact.kind)));
    }
    if let Some(results) = file.value.get("results") {
        let results = round_trip::<Vec<OpResult>>(&file.name, results);
        seen.extend(results.iter().flat_map(|result| [op_status(&result.status), op_id(&result.id)]));
    }
}

#[test]
fn requests_to_a_level_0_plugin_hold_nothing_that_it_does_not_know() {
    let known = ["type", "requestId", "args", "mode", "overrides", "id", "fromDraft"];
    for Golden { name, value, .. } in golden("to_plugin_").into_iter().filter(|file| file.name.ends_with("_level0")) {
        let fields = value.as_object().expect("a frame is an object");
        for field in fields.keys() {
            assert!(known.contains(&field.as_str()), "{name} holds {field}");
        }
    }
}

#[test]
fn a_hello_is_read_field_by_field() {
    let hello = Hello {
        two_way_sync: false,
        one_shot_sync: true,
        confirmation_behavior: "Initial".into(),
        place_id: 11,
        level1: None,
    };
    assert_eq!(one("hello_level0"), PluginFrame::Hello(Box::new(hello.clone())));
    let level1 = HelloLevel1 {
        protocol: 1,
        plugin_version: "0.1.0".into(),
        session_id: "c0ffee00-1111-4222-8333-444455556666".into(),
        instance_id: "place:11".into(),
        role: Role::Edit,
        place_name: "Obby".into(),
        data_model_name: "Place1".into(),
        game_id: 22,
        is_running: false,
        other_editors: 1,
        tools: vec!["run_code".into(), "get_studio_mode".into()],
        reviews: true,
        server_id: Some("a3c1d6f0-3c55-4c0f-8a0f-7a1f7c1b9d01".into()),
        last_n: 41,
        tree_id: Some("5d1a0a5e-21d2-4c1c-b0a5-6c3d9e6c1a77".into()),
        cursor: Some(7),
        in_flight: vec!["6f1d2c1e-8f0a-4f5e-9a53-0c9d6a2b7e11".into()],
        pending: vec!["0b8e7f44-52c4-4ef0-9a39-1f5f2f6f3f10".into()],
    };
    assert_eq!(one("hello_again"), PluginFrame::Hello(Box::new(Hello { level1: Some(level1), ..hello })));
}

#[test]
fn small_frames_are_read_field_by_field() {
    let request_id = RequestId::from("6f1d2c1e-8f0a-4f5e-9a53-0c9d6a2b7e11");
    let plan = Some(request_id.clone());
    assert_eq!(one("taken_tree"), PluginFrame::Taken { request_id: None, part: 0 });
    assert_eq!(one("taken_plan"), PluginFrame::Taken { request_id: plan, part: 1 });
    assert_eq!(
        one("roblox_log_error"),
        PluginFrame::RobloxLog { message: "é 🙂 error".into(), level: 3, logical_id: None }
    );
    assert_eq!(one("bye"), PluginFrame::Bye { reason: "Unloading".into() });
    let (nodes, removed) = (vec![NodeId(2), NodeId(3)], vec![NodeId(4)]);
    assert_eq!(one("edit"), PluginFrame::Edit { seq: 3, nodes, removed, below: vec![NodeId(1)] });
    let answer = ReviewAnswer {
        choices: vec![
            ChangeChoice { id: NodeId(2).into(), choice: Choice::Push },
            ChangeChoice { id: TempId::from("x3").into(), choice: Choice::Skip },
        ],
        all: None,
    };
    let review_id = ReviewId::from("7c0a9d52-5c7e-4a53-9f0e-2b7d3f5a9e40");
    assert_eq!(one("reviewed"), PluginFrame::Reviewed { review_id: review_id.clone(), answer });
    assert_eq!(one("reviewText"), PluginFrame::ReviewText { review_id, id: NodeId(2).into() });
    assert_eq!(one("unknown"), PluginFrame::Unknown { kind: "telepathy".into() });
    let progress = |progress, total, message: Option<&str>| PluginFrame::Progress {
        request_id: request_id.clone(),
        progress,
        total,
        message: message.map(str::to_owned),
    };
    assert_eq!(one("progress"), progress(3.0, Some(10.0), Some("3 of 10")));
    assert_eq!(one("progress_bare"), progress(0.5, None, None));
    let PluginFrame::Result(result) = one("result_getScript") else { panic!("a result") };
    assert_eq!((result.request_id, result.status.as_str()), (request_id, "success"));
    assert_eq!(result.fields["isDraft"], json!(false));
    assert_eq!(result.fields.get("status"), None, "what is read is taken out");
}

#[test]
fn what_a_play_server_says_of_its_clients_is_read_field_by_field() {
    let logical_id = LogicalId::from("9b1f0f3e-7a52-4a3d-8c11-d0a4b6c7e8f9");
    let attach =
        |role, player: &str| PluginFrame::Attach { logical_id: logical_id.clone(), role, player: player.into() };
    assert_eq!(one("attach"), attach(None, "Player1"));
    assert_eq!(one("attach_again"), attach(Target::client(2), "Player2"));
    assert_eq!(one("detach"), PluginFrame::Detach { logical_id: logical_id.clone() });
    let printed = PluginFrame::RobloxLog { message: "from a client".into(), level: 0, logical_id: Some(logical_id) };
    assert_eq!(one("roblox_log_client"), printed);
    for role in ["server", "edit", "client-0", ""] {
        let text = json!({"type": "attach", "logicalId": "x", "role": role, "player": "p"}).to_string();
        let error = PluginFrame::parse(&text).expect_err("no client");
        assert!(error.detail.contains("`role`"), "{role}: {error}");
    }
}

#[test]
fn an_absent_field_stands_for_its_default() {
    let fact: Fact =
        serde_json::from_value(json!({"kind": "extra", "path": "A", "className": "Part"})).expect("a fact");
    assert_eq!((fact.id, fact.parent, fact.studio_hash, fact.is_draft), (None, None, None, false));
    assert_eq!((&fact.temp_id, &fact.name, &fact.subtree, fact.siblings), (&None, &None, &None, None));
    assert_eq!(Expected::of(&fact), None, "what is not listed cannot be expected");
    let null = json!({"kind": "extra", "path": "A", "className": "Part", "id": null, "studioHash": null});
    assert_eq!(serde_json::from_value::<Fact>(null).expect("null is absent"), fact);
    let PluginFrame::Hello(hello) = one("hello_anon") else { panic!("a hello") };
    let level1 = hello.level1.expect("our own plugin");
    assert_eq!((level1.server_id, level1.last_n, level1.cursor), (None, 0, None));
    assert_eq!((level1.in_flight, level1.pending), (vec![], vec![]));
}

#[test]
fn an_id_on_the_wire_is_32_hex_digits() {
    let id = NodeId(0xfeed);
    assert_eq!(round_trip::<NodeId>("id", &json!("0000000000000000000000000000feed")), id);
    for bad in [json!("feed"), json!(0xfeed), json!(null), json!("0000000000000000000000000000fee🙂")] {
        assert!(serde_json::from_value::<NodeId>(bad.clone()).is_err(), "{bad}");
    }
}
