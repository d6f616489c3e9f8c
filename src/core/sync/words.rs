//! Why a run that found something unresolved ended, and the way on.

pub(super) const LEFT_ALONE: &str = "what is unresolved was left alone: settle each such line as it says";
pub(super) const NOTHING_RESOLVED: &str =
    "nothing of it is resolved, so nothing was changed: settle each line as it says";

pub(super) const CANNOT_BE_WRITTEN: &str = "a file cannot be written, so nothing was changed: see each failed line";

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
