//! How a call fails, in one shape for every face of the product.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A failed call: what it is, in words, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// For programs.
    pub code: ErrorCode,
    /// For people: what happened, with the names of things.
    pub message: String,
    /// For people: what to do next.
    pub hint: String,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// No Studio is linked.
    NoStudio,
    /// Several are, and the call did not say which.
    AmbiguousStudio,
    /// The Studio has no such DataModel now: no play test runs, or it has fewer players.
    NoTarget,
    /// The Studio said goodbye or its plugin was reloaded.
    StudioLeft,
    /// The Studio's link was lost a moment ago; the call was not sent.
    Reconnecting,
    /// The deadline passed before the call was sent.
    TimedOut,
    /// The call was sent and may have run.
    OutcomeUnknown,
    /// The caller took it back.
    Cancelled,
    /// An argument is wrong; the message names it.
    BadArguments,
    /// The plugin does not know this.
    Unsupported,
    /// Over the limit of a frame.
    TooLarge,
    /// The project does not serve this place.
    PlaceNotServed,
    /// The thing itself failed.
    Failed,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl ToolError {
    /// An error of `code`, saying what happened and what to do.
    pub fn new(code: ErrorCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    /// The thing itself failed.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorCode::Failed, message, hint)
    }

    /// An argument is wrong.
    pub fn bad_arguments(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadArguments, message, "correct the argument and call again")
    }

    pub(crate) fn no_studio() -> Self {
        Self::new(
            ErrorCode::NoStudio,
            "no Studio is connected",
            "open the place in Roblox Studio with the rojo-mcp plugin, or serve with --headless",
        )
    }

    pub(crate) fn reconnecting(studio: &str) -> Self {
        Self::new(
            ErrorCode::Reconnecting,
            format!("the link to {studio} was lost a moment ago; nothing was sent"),
            "call again in a few seconds",
        )
    }

    pub(crate) fn studio_left(studio: &str) -> Self {
        Self::new(
            ErrorCode::StudioLeft,
            format!("{studio} has left; the call was sent to it and may have run"),
            "open the place again and read its state before you repeat a change",
        )
    }

    pub(crate) fn in_play(studio: &str) -> Self {
        Self::failed(
            format!("a play test of {studio} runs; nothing was synced"),
            "stop the play test and call again; `mode` dryrun says what differs without changing it",
        )
    }

    pub(crate) fn play_ended(studio: &str) -> Self {
        Self::new(
            ErrorCode::StudioLeft,
            format!("{studio} has left, for its play test is over; the call was sent to it and may have run"),
            "what a play test changes ends with it; start one again and repeat the call",
        )
    }

    pub(crate) fn player_left(client: &str) -> Self {
        Self::new(
            ErrorCode::StudioLeft,
            format!("{client} has left the play test; the call was sent to it and may have run"),
            "read the state of the test's server before you repeat a change",
        )
    }

    pub(crate) fn outcome_unknown(studio: &str, why: &str) -> Self {
        Self::new(
            ErrorCode::OutcomeUnknown,
            format!("sent to {studio}, not confirmed; it may have run ({why})"),
            "read Studio's state before you repeat a change",
        )
    }

    /// Where the outcome may be known later.
    pub(crate) fn ask_get_call(mut self, id: &str) -> Self {
        if self.code == ErrorCode::OutcomeUnknown {
            self.hint = format!("ask `get_call` with id {id:?} what became of it before you repeat a change");
        }
        self
    }

    /// The same end, for a call that was not sent yet.
    pub(crate) fn not_sent(&self) -> Self {
        if *self == Self::shutting_down() {
            let what = "the server is stopping; this call was not sent and did not run";
            return Self::failed(what, "start the server and call again");
        }
        match self.code {
            ErrorCode::OutcomeUnknown | ErrorCode::StudioLeft => Self::left_before(),
            _ => self.clone(),
        }
    }

    fn left_before() -> Self {
        let what = "Studio went away before this call was sent; it did not run";
        Self::new(ErrorCode::StudioLeft, what, "call again; `status` says whether it is back")
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorCode::Cancelled, "the caller cancelled", "call again if it is still wanted")
    }

    pub(crate) fn shutting_down() -> Self {
        Self::new(
            ErrorCode::OutcomeUnknown,
            "the server is stopping; a call that was sent may have run",
            "start the server and read Studio's state before you repeat a change",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_prints_as_it_stands_on_the_wire() {
        assert_eq!(ErrorCode::NoStudio.to_string(), "no_studio");
        assert_eq!(serde_json::to_string(&ErrorCode::OutcomeUnknown).expect("a word"), "\"outcome_unknown\"");
    }
}
