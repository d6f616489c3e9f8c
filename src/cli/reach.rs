//! Reach the running server of a project, or get the right to start it.

use std::{path::Path, time::Duration};

use super::Failure;
use crate::{
    attach::{self, Claim, DialError, ServeFile},
    clock,
    session::{SessionError, find_project},
    state::StateFolder,
};

/// How long a server that is starting may take. Reading a very large project takes some seconds.
const STARTING: Duration = Duration::from_secs(45);

/// How often it is looked for meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long `serve` waits for a program that only looked whether a server runs.
const PASSING: Duration = Duration::from_secs(1);

/// What there is.
pub(super) enum Reached {
    /// A server runs, and this is a connection to it.
    Attached(attach::Stream, ServeFile),
    /// None runs; one may be started. Without a claim where the user has no state folder: others
    /// will not find the server then.
    Vacant(Option<Claim>),
}

/// What to do where there is no project that can be used. Whoever stands in a folder of one is told where it is.
pub(super) fn next_after(error: &SessionError) -> String {
    if let SessionError::NoProject { folder, .. } = error
        && let Some(above) = folder.ancestors().skip(1).find(|folder| find_project(folder).is_ok())
    {
        return format!("name the project that this is a part of: {}", above.display());
    }
    error.hint().to_owned()
}

/// The state folder of a project. `None`: the user has none that can be used; the log says why.
///
/// # Errors
/// There is no project.
pub(super) fn state_of(project: &Path) -> Result<Option<StateFolder>, Failure> {
    let file = find_project(project).map_err(|error| Failure::new(error.to_string(), next_after(&error)))?;
    match StateFolder::of(&file) {
        Ok(state) => Ok(Some(state)),
        Err(error) => {
            log::warn!("no state folder, so other commands will not find this server: {error}");
            Ok(None)
        }
    }
}

/// Attach to the server of `project`, waiting for one that is starting, or get the right to start
/// one.
pub(super) async fn reach(project: &Path) -> Result<Reached, Failure> {
    let Some(state) = state_of(project)? else { return Ok(Reached::Vacant(None)) };
    let until = clock::now() + STARTING;
    loop {
        if let Some(claim) = claim(&state)? {
            return Ok(Reached::Vacant(claim));
        }
        let why = match ServeFile::read(&state) {
            Some(file) => match attach::connect(&file).await {
                Ok(stream) => return same_version(&file).map(|()| Reached::Attached(stream, file)),
                Err(error @ DialError::Refused(..)) => return Err(does_not_answer(Some(&file), &error)),
                // It is starting, and this is what a killed one left.
                Err(error) => does_not_answer(Some(&file), &error),
            },
            None => does_not_answer(None, &"it has not said where it listens"),
        };
        if clock::now() > until {
            return Err(why);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The right to start the one server of `project`, for a command that does nothing else.
///
/// # Errors
/// One runs already: it is named.
pub(super) async fn claim_for_serving(project: &Path) -> Result<Option<Claim>, Failure> {
    let Some(state) = state_of(project)? else { return Ok(None) };
    let until = clock::now() + PASSING;
    loop {
        if let Some(claim) = claim(&state)? {
            return Ok(claim);
        }
        if clock::now() > until {
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let who = match ServeFile::read(&state) {
        Some(file) if attach::connect(&file).await.is_ok() => describe(&file),
        _ => "another rojo-mcp that is just starting".to_owned(),
    };
    Err(Failure::new(
        format!("this project is served already, by {who}"),
        "use that server (agents started with `rojo-mcp mcp` and `rojo-mcp sync` find it by themselves), or stop it first",
    ))
}

/// The running server that the state folder names, if it is what it says.
///
/// # Errors
/// It cannot be reached, or is another version's.
pub(super) async fn running(state: &StateFolder) -> Result<ServeFile, Failure> {
    let Some(file) = ServeFile::read(state) else {
        return Err(does_not_answer(None, &"it has not said where it listens"));
    };
    match attach::connect(&file).await {
        Ok(_) => same_version(&file).map(|()| file),
        Err(error) => Err(does_not_answer(Some(&file), &error)),
    }
}

/// `Some(None)`: there is no way to lock here, and none is needed.
fn claim(state: &StateFolder) -> Result<Option<Option<Claim>>, Failure> {
    match Claim::take(state) {
        Ok(claim) => Ok(claim.map(Some)),
        Err(error) => {
            log::warn!("no lock in the state folder, so other commands will not find this server: {error}");
            Ok(Some(None))
        }
    }
}

/// Another version may mean other things by the same words.
fn same_version(file: &ServeFile) -> Result<(), Failure> {
    if file.version == crate::VERSION {
        return Ok(());
    }
    Err(Failure::new(
        format!("this is rojo-mcp {}, and the project is served by {}", crate::VERSION, describe(file)),
        "stop that server, or use the same version of rojo-mcp for both",
    ))
}

/// Whoever wants a token of everybody does not use a server that wants none.
pub(super) fn requires_token(file: &ServeFile) -> Result<(), Failure> {
    if file.requires_token {
        return Ok(());
    }
    Err(Failure::new(
        format!("the project is served by {}, which was started without --require-token", describe(file)),
        "stop that server and start it with --require-token, or leave the flag out here",
    ))
}

/// A server in words.
pub(super) fn describe(file: &ServeFile) -> String {
    let place = crate::host_and_port(file.address);
    format!("rojo-mcp {} at http://{place} (process {})", file.version, file.pid)
}

fn does_not_answer(file: Option<&ServeFile>, why: &dyn std::fmt::Display) -> Failure {
    let who = file.map_or_else(|| "another rojo-mcp".to_owned(), describe);
    Failure::new(
        format!("the project is held by {who}, which cannot be reached: {why}"),
        "wait if it is still starting; otherwise end that process and try again",
    )
}
