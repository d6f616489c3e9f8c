//! What each tool takes. A type is schema, validation and description in one.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::core::{
    console::Level, error::ToolError, ids::OpId, play::PlayMode, protocol::SyncMode, sync::Override, targets::Target,
    text::TextHash,
};

/// What is served, which Studios are connected, what waits, and what is wrong. Call it first, and when something fails.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusArgs {}

/// Bring scripts and folders on disk and in Studio together, as they are now. Edits of one side go to the other, edits of both are merged. One line per change; unresolved ones are left alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncArgs {
    /// Which Studio, if several
    #[serde(default)]
    pub studio: Option<String>,
    /// standard (if absent) applies what is resolved, fastfail all or nothing; dryrun reports; manual asks
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Mode>")]
    pub mode: SyncMode,
    /// Only these files or folders, relative to the project
    #[serde(default)]
    pub paths: Option<Vec<String>>,
    /// Decisions taken beforehand, by `id` or `tempId` of a change
    #[serde(default)]
    pub overrides: Option<Vec<Override>>,
    /// Agree to removing many instances in Studio whose files are gone
    #[serde(default, deserialize_with = "or_default")]
    pub allow_removals: bool,
    /// Your id for this change; the same id again answers the same and runs nothing
    #[serde(default, skip_serializing)]
    pub operation_id: Option<String>,
}

/// Settle one conflict that a sync left: both sides get the same text. It is refused if either side is not as the receipt said.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResolveArgs {
    /// Which Studio, if several
    #[serde(default)]
    pub studio: Option<String>,
    /// The change's id, or tempId
    #[schemars(with = "String")]
    pub id: OpId,
    /// disk: the file's text; studio: Studio's; text: the one given
    pub take: Take,
    /// The text that both sides get
    #[serde(default)]
    pub text: Option<String>,
    /// diskHash of the change; absent if it has none
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub disk_hash: Option<TextHash>,
    /// studioHash of the change; absent if it has none
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub studio_hash: Option<TextHash>,
    /// Your id for this change; the same id again answers the same and runs nothing
    #[serde(default, skip_serializing)]
    pub operation_id: Option<String>,
}

/// Take an earlier sync back, on disk and in Studio together. What was changed since is left as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UndoArgs {
    /// Which Studio, if several
    #[serde(default)]
    pub studio: Option<String>,
    /// `journal` of a sync's answer; the last that changed something if absent
    #[serde(default)]
    pub change: Option<u64>,
    /// Take back what can be, even if something cannot
    #[serde(default, deserialize_with = "or_default")]
    pub partial: bool,
    /// Your id for this change; the same id again answers the same and runs nothing
    #[serde(default, skip_serializing)]
    pub operation_id: Option<String>,
}

/// Whose text counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    /// The file's.
    Disk,
    /// Studio's.
    Studio,
    /// One that is given.
    Text,
}

/// The words of [`SyncMode`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum Mode {
    Standard,
    Fastfail,
    Dryrun,
    Manual,
}

/// Studio's text of one script, with the hashes of both sides. Name it by id, file or instance path.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetScriptArgs {
    /// Which Studio, if several
    #[serde(default)]
    pub studio: Option<String>,
    /// The instance's id in the project
    #[serde(default)]
    pub id: Option<String>,
    /// The file, relative to the project
    #[serde(default)]
    pub fs_path: Option<String>,
    /// The instance, such as ServerScriptService.Main
    #[serde(default)]
    pub path: Option<String>,
    /// The unsaved editor text, where there is one
    #[serde(default, deserialize_with = "or_default")]
    pub from_draft: bool,
    /// First and last line wanted, from 1
    #[serde(default)]
    #[schemars(length(equal = 2))]
    pub lines: Option<Vec<usize>>,
}

/// Run Luau in Studio as a plugin may. Answers the printed lines, the returned values, or the error with its line.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCodeArgs {
    /// Which Studio, if several
    #[serde(default, skip_serializing)]
    pub studio: Option<String>,
    /// Which DataModel: edit (if absent), server, client, client-2
    #[serde(default, skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub target: Option<Target>,
    /// The code; `return` answers values
    pub command: String,
    /// Seconds it may take; 30 if absent
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600))]
    pub timeout: Option<f64>,
    /// Your id for this change; the same id again answers the same and runs nothing
    #[serde(default, rename = "operationId", skip_serializing)]
    pub operation_id: Option<String>,
}

/// What Studio printed: prints, warnings, errors with their stack. Give `next` of the last answer as `since` to go on.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetConsoleOutputArgs {
    /// Which Studio, if several
    #[serde(default)]
    pub studio: Option<String>,
    /// Which DataModel: edit (if absent), server, client, client-2
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub target: Option<Target>,
    /// Only what came after: the `next` of an earlier answer; without it, the newest lines
    #[serde(default)]
    pub since: Option<u64>,
    /// This loud or louder
    #[serde(default)]
    pub level: Option<Level>,
    /// At most so many lines; 200 if absent
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// Count equal lines instead of repeating them; on if absent
    #[serde(default)]
    pub dedupe: Option<bool>,
}

/// Whether Studio edits or plays (edit, play, run), as its DataModels say; with `target`, what that one is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetStudioModeArgs {
    /// Which Studio, if several
    #[serde(default, skip_serializing)]
    pub studio: Option<String>,
    /// Which DataModel: edit, server, client, client-2; the whole Studio if absent
    #[serde(default, skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub target: Option<Target>,
}

/// Start, stop or restart a play test. Done when Studio's DataModels report it. Anyone may stop; only one caller plays at a time.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartStopPlayArgs {
    /// Which Studio, if several
    #[serde(default)]
    pub studio: Option<String>,
    /// start_play: with a player; run_server: without; stop: to edit mode; restart: stop, start again
    pub mode: PlayMode,
    /// Your id for this change; the same id again answers the same and runs nothing
    #[serde(default, skip_serializing)]
    pub operation_id: Option<String>,
}

/// Run Luau in the server of a play test started for it, and end that test. Answers as run_code.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunScriptInPlayModeArgs {
    /// Which Studio, if several
    #[serde(default, skip_serializing)]
    pub studio: Option<String>,
    /// The code; `return` answers values
    pub code: String,
    /// Seconds it may take; 30 if absent
    #[serde(default)]
    #[schemars(range(min = 1, max = 600))]
    pub timeout: Option<f64>,
    /// start_play (if absent): with a player; run_server: without
    #[serde(default)]
    #[schemars(with = "Option<TrialMode>")]
    pub mode: Option<TrialMode>,
    /// Your id for this change; the same id again answers the same and runs nothing
    #[serde(default, rename = "operationId", skip_serializing)]
    pub operation_id: Option<String>,
}

/// Which play test is started for code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialMode {
    /// One with a player.
    #[default]
    StartPlay,
    /// One without a player.
    RunServer,
}

/// Many clients send null for what is not wanted.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Read a tool's arguments.
///
/// # Errors
/// The text names the argument.
pub fn parse<T: DeserializeOwned>(args: Value) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(args).map_err(|error| {
        let path = error.path().to_string();
        let detail = error.into_inner();
        if path == "." {
            ToolError::bad_arguments(detail.to_string())
        } else {
            ToolError::bad_arguments(format!("argument `{path}`: {detail}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message<T: DeserializeOwned + std::fmt::Debug>(args: Value) -> String {
        parse::<T>(args).expect_err("must be refused").message
    }

    #[test]
    fn a_wrong_argument_is_named() {
        assert_eq!(
            message::<RunCodeArgs>(json!({ "command": 7 })),
            "argument `command`: invalid type: integer `7`, expected a string"
        );
        assert_eq!(message::<RunCodeArgs>(json!({})), "missing field `command`");
        assert!(message::<RunCodeArgs>(json!({ "command": "", "code": "" })).contains("unknown field `code`"));
        assert!(message::<SyncArgs>(json!({ "mode": "quick" })).starts_with("argument `mode`: unknown variant"));
        assert!(message::<SyncArgs>(json!({ "paths": ["a", 1] })).starts_with("argument `paths[1]`:"));
        let five = message::<ResolveArgs>(json!({ "id": 5, "take": "disk" }));
        assert_eq!(five, "argument `id`: invalid type: integer `5`, expected a string");
        let two = |second: Value| json!({ "overrides": [{ "id": "x1", "direction": "push" }, second] });
        let sideways = two(json!({ "id": "x2", "direction": "left" }));
        assert!(message::<SyncArgs>(sideways).starts_with("argument `overrides[1].direction`:"));
        let number = two(json!({ "id": "x2", "direction": "pull", "studioHash": 1 }));
        assert!(message::<SyncArgs>(number).starts_with("argument `overrides[1].studioHash`:"));
    }

    #[test]
    fn null_is_as_good_as_nothing() {
        let all_null = json!({ "studio": null, "mode": null, "paths": null, "overrides": null, "allowRemovals": null });
        let args: SyncArgs = parse(all_null).expect("read");
        assert_eq!((args.mode, args.paths, args.allow_removals), (SyncMode::Standard, None, false));
        assert!(!parse::<UndoArgs>(json!({ "change": null, "partial": null })).expect("read").partial);
        assert!(!parse::<GetScriptArgs>(json!({ "id": null, "fromDraft": null })).expect("read").from_draft);
    }
}
