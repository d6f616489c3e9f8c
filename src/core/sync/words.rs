//! Why a run that found something unresolved ended, and the way on.

pub(super) const LEFT_ALONE: &str = "what is unresolved was left alone: settle each such line as it says";
pub(super) const NOTHING_RESOLVED: &str =
    "nothing of it is resolved, so nothing was changed: settle each line as it says";
pub(super) const NOBODY_ASKED: &str =
    "manual mode asks a person, and nobody can be asked here: nothing was changed; see each line for what was found";
pub(super) const CHANGED_SINCE: &str = "it changed since it was shown, so it was left alone";
pub(super) const NOT_SHOWN: &str = "it came up after the list was shown, so it was left alone";
pub(super) const SKIPPED: &str = "left alone, as was chosen";

pub(super) const CANNOT_BE_WRITTEN: &str = "a file cannot be written, so nothing was changed: see each failed line";

pub(super) const CANNOT_BE_KEPT: &str =
    "a text that would be replaced is kept nowhere and cannot be had, so nothing was changed: sync again";

/// All or nothing was wanted.
pub(super) fn nothing_changed(undoes: bool) -> &'static str {
    if undoes {
        "something cannot be taken back, so nothing was changed: see each unresolved line, or take back the rest \
         with `partial`"
    } else {
        "something is unresolved, so nothing was changed: settle each unresolved line as it says, or sync the rest \
         by `paths`"
    }
}
