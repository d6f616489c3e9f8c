//! Where a token is required: who is refused and told why, and how a Studio is paired.

use std::{path::Path, sync::Arc};

use hyper::StatusCode;
use rojo_mcp::{
    headless::{HeadlessConfig, HeadlessStudio, Knobs},
    pairing::{Key, PairingList},
    plugin_model,
    state::StateFolder,
};
use serde_json::{Value, json};

use crate::{
    attach::{StdioAgent, serve_with},
    command::run,
    doctor::plugin,
    faults::hello1,
    level0::{FakePlugin, hello},
    support::{TestServer, demo, save, state_root, until},
};

const WINDOW: &str = "local window = game:GetService('PluginGuiService').RojoMcp.Frame";

/// A Studio with the plugin as it is built or installed.
fn studio(port: u16, place: Vec<u8>, plugin: Vec<u8>) -> HeadlessStudio {
    let settings = [("RojoMcpServer".to_owned(), json!(format!("127.0.0.1:{port}")))].into_iter().collect();
    let place_name = "Lantern Run".into();
    let config = HeadlessConfig { place, plugin, settings, place_id: 0, place_name, knobs: Knobs::default() };
    HeadlessStudio::start(config).expect("the headless Studio starts")
}

fn built() -> Vec<u8> {
    plugin_model::build().expect("the plugin builds")
}

/// What the plugin's window says of the link.
async fn says(studio: &HeadlessStudio) -> String {
    let values = studio.run(&format!("{WINDOW} return window.Status.Text")).await.expect("the window is there");
    values[0].as_str().expect("a text").to_owned()
}

async fn until_it_says(studio: &HeadlessStudio, part: &str) {
    until(part, || async { says(studio).await.contains(part) }).await;
}

/// Type something into a field of the plugin's window.
async fn enter(studio: &HeadlessStudio, field: &str, text: &str) {
    let code = format!("{WINDOW} window.{field}.Text = {text:?} Headless.fire(window.{field}, 'FocusLost', true)");
    studio.run(&code).await.expect("the field is there");
}

/// Ask the server of `project` for a tool with these headers.
async fn call(server: &TestServer, headers: &[(&str, &str)], tool: &str) -> (StatusCode, Value) {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": {} }
    });
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    let (status, _, body) = server.agent().http("POST", "/mcp", &all, body.to_string()).await;
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

pub fn bearer(server: &TestServer, project: &Path) -> String {
    format!("Bearer {}", server.serve_file(project).token.secret())
}

/// What `status` tells an agent that sends the token.
async fn status(server: &TestServer, project: &Path) -> Value {
    let bearer = bearer(server, project);
    let (status, answer) = call(server, &[("authorization", &bearer)], "status").await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["result"]["structuredContent"].clone()
}

fn another(code: &str) -> String {
    format!("{:06}", (code.parse::<u32>().expect("six digits") + 1) % 1_000_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_studio_is_refused_until_its_code_is_typed_and_comes_back_without_one() {
    let project = demo();
    let state = StateFolder::below(&state_root(project.path()), project.path()).expect("a state folder");
    let server = TestServer::start_requiring(project.path(), 0, PairingList::in_folder(&state)).await;
    let studio = studio(server.port, server.session.place_model(), built());
    until_it_says(&studio, "Refused: this server takes only paired Studios").await;
    let told = status(&server, project.path()).await;
    let problem = told["problems"].as_array().and_then(|problems| {
        problems.iter().find(|one| one["what"] == "Studio \"Lantern Run\" was refused: it is not paired")
    });
    assert!(problem.is_some_and(|one| one["next"].as_str().is_some_and(|next| next.contains("rojo-mcp status"))));

    // Nobody was shown a code, so none counts.
    enter(&studio, "Code", "000000").await;
    until_it_says(&studio, "no code counts").await;
    enter(&studio, "Code", "12x").await;
    let wrong = format!("{WINDOW} return window.Problem.Text");
    until("what is no code is refused at once", || async {
        studio.run(&wrong).await.expect("the window is there")[0].as_str().is_some_and(|text| text.contains("6 digits"))
    })
    .await;

    let code = server.pairing().report().code.expect("a code");
    let told = status(&server, project.path()).await.to_string();
    assert!(!told.contains(&code), "agents are not told the code: {told}");
    for left in ["4 more", "3 more", "2 more", "1 more", "last try"] {
        enter(&studio, "Code", &another(&code)).await;
        until_it_says(&studio, left).await;
    }
    enter(&studio, "Code", &code).await;
    until_it_says(&studio, "no code counts").await;

    let code = server.pairing().report().code.expect("somebody asks for the next");
    enter(&studio, "Code", &code).await;
    until_it_says(&studio, "Connected to Lantern Run").await;
    assert_eq!(server.pairing().refused_of_late(), []);
    let list = PairingList::in_folder(&state);
    assert_eq!(list.all().expect("the list").iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["Lantern Run"]);

    let port = server.port;
    server.stop().await;
    until_it_says(&studio, "Connecting").await;
    let server = TestServer::start_requiring(project.path(), port, PairingList::in_folder(&state)).await;
    until_it_says(&studio, "Connected to Lantern Run").await;

    list.clear().expect("revoked");
    until_it_says(&studio, "Refused: this server takes only paired Studios").await;
    assert_eq!(status(&server, project.path()).await["studios"].as_array().map(Vec::len).unwrap_or_default(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_sends_the_token_is_served_and_rojo_is_turned_off() {
    let project = demo();
    let server = TestServer::start_requiring(project.path(), 0, PairingList::in_memory()).await;
    let bearer = bearer(&server, project.path());
    for headers in [&[][..], &[("authorization", "Bearer guess")], &[("authorization", &bearer), ("roblox-id", "0")]] {
        assert_eq!(call(&server, headers, "status").await.0, StatusCode::FORBIDDEN, "{headers:?}");
    }
    assert_eq!(call(&server, &[("authorization", &bearer)], "status").await.0, StatusCode::OK);

    let agent = server.agent();
    let token = ("authorization", bearer.as_str());
    for (method, path) in
        [("GET", "/api/rojo"), ("GET", "/api/read/0"), ("POST", "/api/write"), ("GET", "/api/socket/0")]
    {
        let (status, _, body) = agent.http(method, path, &[token], "").await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        assert!(String::from_utf8_lossy(&body).contains("--require-token"), "{path} says why");
    }
    assert_eq!(agent.http("GET", "/api/mcp/reviews", &[], "").await.0, StatusCode::FORBIDDEN);
    assert_eq!(agent.http("GET", "/api/mcp/reviews", &[token], "").await.0, StatusCode::OK);
    // What is served is not told to everybody on this machine.
    for path in ["/", "/api/mcp/server"] {
        let (status, _, told) = agent.http("GET", path, &[], "").await;
        let told = String::from_utf8_lossy(&told).into_owned();
        assert_eq!(status, StatusCode::OK, "{path}: {told}");
        let folder = project.path().file_name().expect("a name").to_string_lossy();
        assert!(!told.contains("Lantern Run") && !told.contains(&*folder), "{path}: {told}");
        let (_, _, told) = agent.http("GET", path, &[token], "").await;
        assert!(String::from_utf8_lossy(&told).contains("Lantern Run"), "{path}");
    }
    // How pairing stands is for who has the token, and for no game.
    assert_eq!(agent.http("GET", "/api/mcp/server/pairing", &[], "").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(agent.http("GET", "/api/mcp/server/pairing", &[token], "").await.0, StatusCode::OK);
    let game = agent.http("GET", "/api/mcp/server/pairing", &[token, ("roblox-id", "0")], "").await;
    assert_eq!(game.0, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_0_plugin_is_refused_with_the_reason() {
    let project = demo();
    let server = TestServer::start_requiring(project.path(), 0, PairingList::in_memory()).await;
    let mut plugin = FakePlugin::connect(server.port).await;
    plugin.send(hello(7)).await;
    let rejected = plugin.next().await.expect("a reason");
    assert_eq!((&rejected["type"], &rejected["code"]), (&json!("rejected"), &json!("not_paired")), "{rejected}");
    assert_eq!(plugin.next().await, None, "closed");
    let refused = server.pairing().refused_of_late();
    assert!(refused[0].sentence().contains("place 7") && refused[0].why.contains("cannot prove"), "{refused:?}");
}

/// Say hello to `server` as what dialled `host`, and answer its challenge with what `proof` makes of it.
async fn prove(server: &TestServer, host: &str, proof: impl FnOnce(&str) -> String) -> Value {
    let mut plugin = FakePlugin::connect_with(server.port, host, None).await;
    plugin.send(hello1("s", "place:1")).await;
    let challenge = plugin.next().await.expect("a challenge");
    assert_eq!(challenge["type"], "challenge", "{challenge}");
    let proofs = [proof(challenge["nonce"].as_str().expect("a nonce"))];
    plugin.send(json!({ "type": "proof", "proofs": proofs })).await;
    plugin.next().await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_counts_for_one_connection_to_one_server() {
    let project = demo();
    let server = TestServer::start_requiring(project.path(), 0, PairingList::in_memory()).await;
    let key = server.pairing().key_for_here();
    let own = format!("localhost:{}", server.port);
    let mut heard = String::new();
    let answer = prove(&server, &own, |nonce| {
        heard = key.prove(&own, nonce);
        heard.clone()
    })
    .await;
    assert_eq!(answer["type"], "welcome", "{answer}");
    let answer = prove(&server, &own, |_| heard).await;
    assert_eq!(answer["code"], "not_paired", "what was heard before: {answer}");
    let answer = prove(&server, "far.lan", |nonce| key.prove(&own, nonce)).await;
    assert_eq!(answer["code"], "not_paired", "what was meant for another: {answer}");
    let answer = prove(&server, "far.lan", |nonce| key.prove("far.lan", nonce)).await;
    assert_eq!(answer["type"], "welcome", "{answer}");
    let answer = prove(&server, &own, |nonce| Key::random().prove(&own, nonce)).await;
    assert_eq!(answer["code"], "not_paired", "a stranger's: {answer}");

    let mut silent = FakePlugin::connect(server.port).await;
    silent.send(json!({ "type": "proof", "proofs": [] })).await;
    assert_eq!(silent.next().await.expect("a reason")["code"], "bad_hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sends_the_servers_token_needs_no_proof() {
    let project = demo();
    let server = TestServer::start_requiring(project.path(), 0, PairingList::in_memory()).await;
    let token = server.serve_file(project.path()).token;
    let own = format!("localhost:{}", server.port);
    let mut plugin = FakePlugin::connect_with(server.port, &own, Some(token.secret())).await;
    plugin.send(hello1("s", "place:1")).await;
    assert_eq!(plugin.next().await.expect("an answer")["type"], "welcome");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_flag_nothing_is_asked() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let mut plugin = FakePlugin::connect(server.port).await;
    plugin.send(hello1("s", "place:1")).await;
    assert_eq!(plugin.next().await.expect("an answer")["type"], "welcome");
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_of_all_links_together_are_counted() {
    let project = demo();
    let server = Arc::new(TestServer::start_requiring(project.path(), 0, PairingList::in_memory()).await);
    server.pairing().refused("Somebody", "it is not paired");
    let code = server.pairing().report().code.expect("a code");
    let guesses = (0..20).map(|number| {
        let (server, guess) = (Arc::clone(&server), another(&code));
        async move {
            let mut plugin = FakePlugin::connect(server.port).await;
            plugin.send(hello1(&format!("s{number}"), &format!("place:{number}"))).await;
            plugin.next().await.expect("a challenge");
            plugin.send(json!({ "type": "pair", "code": guess, "hash": "ab".repeat(20) })).await;
            plugin.next().await.expect("an answer")["reason"].as_str().expect("a reason").to_owned()
        }
    });
    let answers = futures_util::future::join_all(guesses).await;
    let looked_at = answers.iter().filter(|answer| answer.contains("that is not the code")).count();
    assert_eq!(looked_at, 5, "{answers:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_go_on_and_an_installed_plugin_needs_no_code() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless", "--require-token"]).await;
    let stdio = StdioAgent::start(project.path(), &[]).await;
    assert_eq!(stdio.call("status", json!({})).await["studios"][0]["link"], "live", "paired by construction");
    let played = stdio.call("run_script_in_play_mode", json!({ "code": "return 7" })).await;
    assert_eq!(played["returns"], json!([7]), "the server of a play test comes in too: {played}");
    save(project.path(), "src/shared/Config.luau", "return 1\n");
    let synced = run(project.path(), "sync", &[]).await;
    assert_eq!(synced.status, Some(0), "{}{}", synced.stdout, synced.stderr);
    let shown = run(project.path(), "status", &[]).await;
    assert!(shown.stdout.contains("a token is required here") && !shown.stdout.contains("code"), "{}", shown.stdout);

    let stranger = studio(port, Vec::new(), built());
    until_it_says(&stranger, "Refused").await;
    let shown = run(project.path(), "status", &[]).await;
    assert!(shown.stdout.contains("\"Lantern Run\" was refused: it is not paired"), "{}", shown.stdout);
    let code = shown.stdout.split("type code ").nth(1).and_then(|rest| rest.get(..6)).expect("a code").to_owned();
    let doctor = run(project.path(), "doctor", &[]).await;
    assert!(doctor.stdout.contains("warn  pairing") && doctor.stdout.contains(&code), "{}", doctor.stdout);
    enter(&stranger, "Code", &code).await;
    until_it_says(&stranger, "Connected").await;

    let plugins = project.path().join("Plugins");
    let ran = plugin(project.path(), "install", &["--path", &plugins.display().to_string()]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let installed = std::fs::read(plugins.join("RojoMcp.rbxm")).expect("it is there");
    let own = studio(port, Vec::new(), installed);
    until_it_says(&own, "Connected").await;
    let ran = plugin(project.path(), "unpair", &["nobody"]).await;
    assert_eq!(ran.status, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("\"nobody\"") && ran.stderr.contains("Lantern Run"), "it says whom: {}", ran.stderr);
    let ran = plugin(project.path(), "unpair", &["lantern run"]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("unpaired") && ran.stdout.contains("Lantern Run"), "{}", ran.stdout);
    until_it_says(&stranger, "Refused").await;
    assert!(says(&own).await.contains("Connected"), "it was not meant");
    assert_eq!(plugin(project.path(), "unpair", &[]).await.status, Some(0));
    until_it_says(&own, "Refused").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sends_the_plugin_to_another_server() {
    let project = demo();
    let other = demo();
    let server = TestServer::start(project.path()).await;
    let further = TestServer::start(other.path()).await;
    let studio = server.studio().await;
    enter(&studio, "Server", "nowhere").await;
    let wrong = format!("{WINDOW} return window.Problem.Text");
    until("a wrong address is refused", || async {
        studio.run(&wrong).await.expect("the window is there")[0]
            .as_str()
            .is_some_and(|text| text.contains("host:port"))
    })
    .await;
    server.until_live(1).await;
    enter(&studio, "Server", &format!("localhost:{}", further.port)).await;
    further.until_live(1).await;
    server.until_live(0).await;
}
