//! `POST /api/open/<id>`: open a script's file in the person's editor.

use std::{net::IpAddr, path::Path, path::PathBuf, str::FromStr};

use hyper::{Response, StatusCode};
use librojo::web_api::{ErrorResponse, OpenResponse};
use rbx_dom_weak::types::Ref;

use super::{Body, RojoApi, answer};
use crate::session::{ServeSession, wire};

/// Opens a file as the person's desktop does, or says why it cannot.
pub(super) type Opener = fn(&Path) -> Result<(), String>;

pub(super) fn with_the_system(path: &Path) -> Result<(), String> {
    opener::open(path).map_err(|error| format!("Attempting to open {} failed: {error}", path.display()))
}

pub(super) async fn answer(api: &RojoApi, peer: IpAddr, id: &str) -> Response<Body> {
    // It starts a program here, so nobody elsewhere may ask for it, whatever the bind address.
    if !peer.to_canonical().is_loopback() {
        let refusal = ErrorResponse::forbidden("/api/open is only available to local clients");
        return answer::msgpack(StatusCode::FORBIDDEN, &refusal);
    }
    let Ok(id) = Ref::from_str(id) else { return answer::bad_request("Invalid instance ID") };
    let missing = |details: &str| answer::msgpack(StatusCode::NOT_FOUND, &ErrorResponse::bad_request(details));
    let file = match script_file(&api.session, id) {
        None => return missing("Instance not found"),
        Some(None) => return missing("No appropriate file could be found to open this script"),
        Some(Some(file)) => file,
    };
    let open = api.opener;
    match tokio::task::spawn_blocking(move || open(&file)).await {
        Ok(Ok(())) => answer::ok(&OpenResponse { session_id: api.session.id() }),
        Ok(Err(error)) => answer::internal_error(error),
        Err(error) => answer::internal_error(error.to_string()),
    }
}

/// The file of the script `id`. `None`: no such instance; `Some(None)`: it has none of its own.
pub(super) fn script_file(session: &ServeSession, id: Ref) -> Option<Option<PathBuf>> {
    let (_, looks) = session.look(&[wire::node_id(id)]);
    let look = looks.into_iter().next().flatten()?;
    let is_script = |path: &PathBuf| {
        // Never a model or a project, whose text is another.
        matches!(path.extension().and_then(|extension| extension.to_str()), Some("lua" | "luau"))
    };
    let file = look.source.and(look.fs_path).filter(is_script);
    Some(file.map(|file| session.project().folder.join(file)))
}
