//! The Studio link on the wire, frame by frame. `tests/fixtures/wire` holds at least one frame of
//! every type and variant, named `<direction>_<type>[_variant].json`; both sides read them.

#[path = "wire/fields.rs"]
mod fields;
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
        Notice::Challenge { .. } => "challenge",
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
        RejectCode::NotPaired => "code not_paired",
        RejectCode::BadCode => "code bad_code",
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
        PluginFrame::Proof { .. } => "proof",
        PluginFrame::Pair { .. } => "pair",
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
        Notice::Challenge { .. }
        | Notice::Heartbeat { .. }
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
