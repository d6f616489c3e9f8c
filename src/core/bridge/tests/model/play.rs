//! Play tests in the model: anyone starts, stops and restarts them at any time, and the play server comes and
//! goes as it likes.

use serde_json::{Value, json};

use super::{super::*, world::World};
use crate::core::{
    play::{OwnerId, PlayMode},
    protocol::RequestBody,
};

const MODES: [PlayMode; 4] = [PlayMode::StartPlay, PlayMode::RunServer, PlayMode::Stop, PlayMode::Restart];

impl World {
    /// A press of a button, or (with the fifth) a script that plays.
    pub(super) fn press(&mut self, caller: CallerId, place: u64, which: usize) -> Ask {
        // Calls that come one after the other are mostly those of one.
        let owner = OwnerId(caller.0 / 8 % 3);
        match MODES.get(which) {
            Some(mode) => {
                self.pressed.insert(caller, (place, *mode));
                Ask::Play { mode: *mode, owner }
            }
            None => Ask::PlayScript { args: json!({"caller": caller.0, "place": place}), owner },
        }
    }

    /// What is said of a button is so. `false`: the caller did not press any.
    pub(super) fn is_press(&self, caller: CallerId, outcome: &Result<Answer, ToolError>) -> bool {
        let Some((place, mode)) = self.pressed.get(&caller) else { return false };
        match outcome {
            // A level-0 plugin says what it likes.
            Ok(Answer::Tool(_)) if *place == 3 => {}
            Ok(Answer::Tool(response)) => {
                let word = response["mode"].as_str().expect("a mode");
                let edits = *mode == PlayMode::Stop;
                assert_eq!(edits, word == "edit", "{mode:?} came to {word}");
                let windows = self.rig.bridge.studios.windows();
                let window = windows.iter().find(|window| window.name == format!("place:{place}"));
                assert_eq!(window.map(|window| window.is_played()), Some(!edits), "{mode:?} came to {word}");
            }
            Ok(other) => panic!("no answer to a button: {other:?}"),
            Err(error) => assert!(!error.message.is_empty() && !error.hint.is_empty(), "{error:?}"),
        }
        true
    }
}

/// It starts a test, which is a copy of what nothing changes meanwhile.
pub(super) fn starts(body: &RequestBody) -> bool {
    let RequestBody::Tool { name, args } = body else { return false };
    name == "run_script_in_play_mode" || (name == "start_stop_play" && args["mode"] != "stop")
}

/// What a plugin says that was asked for that; sometimes it knows that its test is over.
pub(super) fn asked(args: &Value, which: usize) -> Value {
    json!({"asked": args["mode"], "ended": which == 2})
}
