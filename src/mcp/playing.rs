//! Play tests, as agents see them.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    answers::{RunCode, StudioMode},
    args::{GetStudioModeArgs, RunScriptInPlayModeArgs, StartStopPlayArgs},
    backend::{Backend, ProgressSink},
    operations::claim,
    tools::{READ_PATIENCE, code_patience, read_response, run_code_answer, to_json, wrong_answer},
};
use crate::core::{
    bridge::{Answer, Ask, Call},
    error::ToolError,
};

/// How long a play test may take to begin or end.
const PLAY_PATIENCE: Duration = Duration::from_secs(50);
/// What the test around a script may take: the plugin gives it 25 s, and 15 s to end.
const TRIAL_OVERHEAD: Duration = Duration::from_secs(50);

pub(super) async fn get_studio_mode(
    backend: Arc<Backend>,
    args: GetStudioModeArgs,
    progress: Option<ProgressSink>,
) -> Result<StudioMode, ToolError> {
    let ask = Ask::Mode { target: args.target };
    let Answer::Tool(response) = backend.call(args.studio, READ_PATIENCE, ask, progress).await? else {
        return Err(wrong_answer("get_studio_mode"));
    };
    let StudioMode { mode } = match response {
        Value::String(mode) => StudioMode { mode },
        response => read_response(response)?,
    };
    // The server of a play test speaks for the whole Studio, which plays.
    let plays = args.target.is_none() && mode == "server";
    Ok(StudioMode { mode: if plays { "play".to_owned() } else { mode } })
}

pub(super) async fn start_stop_play(
    backend: Arc<Backend>,
    args: StartStopPlayArgs,
    progress: Option<ProgressSink>,
) -> Result<StudioMode, ToolError> {
    let claim = claim("start_stop_play", args.operation_id.as_deref(), &args)?;
    let ask = Ask::Play { mode: args.mode, owner: backend.hub.owner() };
    let call = Call { studio: args.studio, patience: PLAY_PATIENCE, ask, operation: claim };
    match backend.change(call, progress).await? {
        Answer::Tool(response) => mode_of(response),
        _ => Err(wrong_answer("start_stop_play")),
    }
}

/// What it came to.
fn mode_of(response: Value) -> Result<StudioMode, ToolError> {
    match response {
        Value::String(mode) => Ok(StudioMode { mode }),
        // Kept for a server that was killed, which alone would have known what came of it.
        response if response.get("asked").is_some() && response.get("mode").is_none() => {
            let why = "the server that asked for it ended before Studio's DataModels had reported";
            Err(ToolError::outcome_unknown("Studio", why))
        }
        response => read_response(response),
    }
}

pub(super) async fn run_script_in_play_mode(
    backend: Arc<Backend>,
    args: RunScriptInPlayModeArgs,
    progress: Option<ProgressSink>,
) -> Result<RunCode, ToolError> {
    let patience = code_patience(args.timeout)?;
    let claim = claim("run_script_in_play_mode", args.operation_id.as_deref(), &(&args.studio, &args))?;
    let sent = RunScriptInPlayModeArgs {
        timeout: Some(patience.as_secs_f64()),
        mode: Some(args.mode.unwrap_or_default()),
        ..args.clone()
    };
    let ask = Ask::PlayScript { args: to_json(&sent), owner: backend.hub.owner() };
    let call = Call { studio: args.studio, patience: patience + TRIAL_OVERHEAD, ask, operation: claim };
    match backend.change(call, progress).await? {
        Answer::Tool(response) => run_code_answer(response),
        _ => Err(wrong_answer("run_script_in_play_mode")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn that_a_plugin_was_asked_is_no_mode() {
        assert_eq!(mode_of(json!({ "mode": "play" })).expect("a mode").mode, "play");
        assert_eq!(mode_of(json!("Play test started")).expect("a mode").mode, "Play test started");
        let error = mode_of(json!({ "asked": "start_play" })).expect_err("nobody knows");
        assert!(error.message.contains("before Studio's DataModels had reported"), "{error:?}");
    }
}
