//! Play tests, as agents see them.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    answers::StudioMode,
    args::{GetStudioModeArgs, StartStopPlayArgs},
    backend::{Backend, ProgressSink},
    operations::claim,
    tools::{READ_PATIENCE, read_response, wrong_answer},
};
use crate::core::{
    bridge::{Answer, Ask, Call},
    error::ToolError,
};

/// How long a play test may take to begin or end.
const PLAY_PATIENCE: Duration = Duration::from_secs(50);

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
        Answer::Tool(Value::String(text)) => Ok(StudioMode { mode: text }),
        Answer::Tool(response) => read_response(response),
        _ => Err(wrong_answer("start_stop_play")),
    }
}
