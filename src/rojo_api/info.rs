//! `GET /api/rojo`: which project this is.

use std::sync::LazyLock;

use clap3::CommandFactory;
use hyper::Response;
use librojo::web_api::{PROTOCOL_VERSION, ServerInfoResponse};

use super::{Body, answer};
use crate::session::{ServeSession, wire};

/// The plugin compares this with its own version. librojo tells it only through its command line.
static ROJO_VERSION: LazyLock<String> =
    LazyLock::new(|| librojo::cli::Options::command().get_version().unwrap_or_default().to_owned());

pub(super) fn answer(session: &ServeSession) -> Response<Body> {
    let project = session.project();
    answer::ok(&ServerInfoResponse {
        session_id: session.id(),
        server_version: ROJO_VERSION.clone(),
        protocol_version: PROTOCOL_VERSION,
        project_name: project.name.clone(),
        expected_place_ids: project.serve_place_ids.clone(),
        unexpected_place_ids: project.blocked_place_ids.clone(),
        game_id: project.game_id,
        place_id: project.place_id,
        root_instance_id: wire::referent(session.root()),
    })
}
