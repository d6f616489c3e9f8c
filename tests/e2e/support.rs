//! What the end-to-end tests share.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, body::Bytes, header::HeaderMap};
use hyper_util::rt::TokioIo;
use rojo_mcp::{
    Server, ServerConfig,
    headless::{HeadlessConfig, HeadlessStudio, Knobs},
    pairing::{Pairing, PairingList},
    session::ServeSession,
    store::Store,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// No condition in these tests takes longer, on a busy machine in a debug build.
pub const BOUND: Duration = Duration::from_secs(30);

/// The demo project, in a folder of its own.
pub fn demo() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/projects/demo"), folder.path());
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("the fixture") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// Where our programs keep the state of a project: inside its temporary folder, so that it goes with it.
pub fn state_root(project: &Path) -> PathBuf {
    project.join(".state")
}

/// Our program, with such a state folder.
pub fn program(project: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rojo-mcp"));
    command.env(rojo_mcp::state::STATE_FOLDER_VARIABLE, state_root(project));
    command
}

/// A server in this process.
pub struct TestServer {
    pub session: Arc<ServeSession>,
    pub port: u16,
    shutdown: CancellationToken,
    server: Option<Server>,
}

impl TestServer {
    pub async fn start(project: &Path) -> Self {
        Self::start_with(project, Store::in_memory(), 0).await
    }

    /// One that remembers in `store`, on a port of its own or on `port`.
    pub async fn start_with(project: &Path, store: Store, port: u16) -> Self {
        Self::start_for(project, store, port, Vec::new()).await
    }

    /// One that is reached under these names too.
    pub async fn start_for(project: &Path, store: Store, port: u16, allowed_hosts: Vec<String>) -> Self {
        Self::start_as(project, port, |config| ServerConfig { store, allowed_hosts, ..config }).await
    }

    /// One that requires a token, and knows the Studios of this list.
    pub async fn start_requiring(project: &Path, port: u16, list: PairingList) -> Self {
        let pairing = Arc::new(Pairing::new(list, true));
        let allowed_hosts = vec!["far.lan".to_owned()];
        Self::start_as(project, port, |config| ServerConfig { pairing, allowed_hosts, ..config }).await
    }

    /// One that listens on all addresses of this machine, and is reached as `host` too.
    pub async fn start_everywhere(project: &Path, host: String, list: PairingList) -> Self {
        let pairing = Arc::new(Pairing::new(list, false));
        let allowed_hosts = vec![host];
        let at = (Ipv4Addr::UNSPECIFIED, 0).into();
        Self::start_at(project, at, |config| ServerConfig { pairing, allowed_hosts, ..config }).await
    }

    async fn start_as(project: &Path, port: u16, change: impl FnOnce(ServerConfig) -> ServerConfig) -> Self {
        Self::start_at(project, (Ipv4Addr::LOCALHOST, port).into(), change).await
    }

    async fn start_at(project: &Path, address: SocketAddr, change: impl FnOnce(ServerConfig) -> ServerConfig) -> Self {
        let project = project.to_path_buf();
        let session = tokio::task::spawn_blocking(move || ServeSession::start(&project))
            .await
            .expect("no panic")
            .expect("the project loads");
        let listener = TcpListener::bind(address).await.expect("a free port");
        let shutdown = CancellationToken::new();
        let config = change(ServerConfig::new(Arc::clone(&session), shutdown.clone()));
        let server = Server::start(listener, config).expect("it starts");
        Self { session, port: server.address.port(), shutdown, server: Some(server) }
    }

    /// A headless Studio on this server, linked and with the tree.
    pub async fn studio(&self) -> HeadlessStudio {
        let studio = headless(self.port, self.session.place_model());
        self.until_live(1).await;
        studio
    }

    /// The same, with the files live, or both sides.
    pub async fn live_studio(&self, two_way: bool) -> HeadlessStudio {
        self.live_studio_of(self.session.place_model(), two_way, "Initial").await
    }

    /// The same with a place, and with what the plugin's setting says of questions.
    pub async fn live_studio_of(&self, place: Vec<u8>, two_way: bool, confirmation: &str) -> HeadlessStudio {
        let mode = [
            ("RojoMcpOneShotSync", json!(false)),
            ("RojoMcpTwoWaySync", json!(two_way)),
            ("RojoMcpConfirmationBehavior", json!(confirmation)),
        ];
        let studio = headless_with(self.port, place, 0, &mode, Knobs::default());
        self.until_live(1).await;
        studio
    }

    /// The same, with somebody at its screen who can be asked.
    pub async fn watched_studio(&self) -> HeadlessStudio {
        let knobs = Knobs { somebody_watches: true, ..Knobs::default() };
        let studio = headless_with(self.port, self.session.place_model(), 0, &[], knobs);
        self.until_live(1).await;
        studio
    }

    /// Who may come in.
    pub fn pairing(&self) -> &Pairing {
        &self.server.as_ref().expect("it runs").pairing
    }

    /// What says where it is, for programs that look for it.
    pub fn serve_file(&self, project: &Path) -> rojo_mcp::attach::ServeFile {
        let server = self.server.as_ref().expect("it runs");
        rojo_mcp::attach::ServeFile {
            pid: std::process::id(),
            address: server.address,
            token: server.token.clone(),
            version: rojo_mcp::VERSION.into(),
            requires_token: server.pairing.is_required(),
            project: project.join("default.project.json"),
        }
    }

    pub fn agent(&self) -> Agent {
        Agent { port: self.port }
    }

    /// Wait until this many Studios are live.
    pub async fn until_live(&self, count: usize) {
        self.agent().until_live(count).await;
    }

    pub async fn stop(mut self) {
        self.shutdown.cancel();
        self.server.take().expect("it runs").stopped().await;
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// A headless Studio that dials this port.
pub fn headless(port: u16, place: Vec<u8>) -> HeadlessStudio {
    headless_with(port, place, 0, &[], Knobs::default())
}

/// The same, with a place that was published.
pub fn headless_of(port: u16, place: Vec<u8>, place_id: u64) -> HeadlessStudio {
    headless_with(port, place, place_id, &[], Knobs::default())
}

/// The same, with settings of the plugin.
fn headless_with(port: u16, place: Vec<u8>, place_id: u64, given: &[(&str, Value)], knobs: Knobs) -> HeadlessStudio {
    let mut settings: serde_json::Map<String, Value> =
        given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    settings.insert("RojoMcpServer".into(), format!("127.0.0.1:{port}").into());
    HeadlessStudio::start(HeadlessConfig {
        place,
        plugin: rojo_mcp::plugin_model::build().expect("the plugin builds"),
        settings,
        place_id,
        place_name: "Lantern Run".into(),
        knobs,
    })
    .expect("the headless Studio starts")
}

/// An agent that just calls, over HTTP.
#[derive(Clone, Copy)]
pub struct Agent {
    pub port: u16,
}

/// What a tool answered.
#[derive(Debug)]
pub struct Told {
    pub structure: Value,
    pub text: String,
    pub is_error: bool,
}

impl Agent {
    /// Call a tool.
    pub async fn call(&self, tool: &str, args: Value) -> Told {
        let result = self.rpc("tools/call", json!({ "name": tool, "arguments": args })).await;
        Told {
            structure: result["structuredContent"].clone(),
            text: result["content"][0]["text"].as_str().expect("a text").to_owned(),
            is_error: result["isError"].as_bool().unwrap_or(false),
        }
    }

    /// Call a tool that must succeed.
    pub async fn ask(&self, tool: &str, args: Value) -> Value {
        let told = self.call(tool, args.clone()).await;
        assert!(!told.is_error, "{tool} {args}: {}", told.text);
        told.structure
    }

    /// Run code that must succeed, and give its first value.
    pub async fn eval(&self, code: &str) -> Value {
        let answer = self.ask("run_code", json!({ "command": code })).await;
        assert_eq!(answer["ok"], json!(true), "{code}: {answer}");
        answer["returns"][0].clone()
    }

    /// One JSON-RPC request without a session.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, _, body) =
            self.http("POST", "/mcp", &[("content-type", "application/json")], body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        let answer: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(answer.get("error"), None, "{method}: {answer}");
        answer["result"].clone()
    }

    /// One HTTP request on a connection of its own.
    pub async fn http(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> (StatusCode, HeaderMap, Bytes) {
        self.http_to(Ipv4Addr::LOCALHOST.into(), method, path, headers, body).await
    }

    /// The same, to another address of this machine.
    pub async fn http_to(
        &self,
        ip: IpAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> (StatusCode, HeaderMap, Bytes) {
        let stream = TcpStream::connect((ip, self.port)).await.expect("the server listens");
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", format!("localhost:{}", self.port));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let response =
            tokio::time::timeout(BOUND, sender.send_request(request)).await.expect("in time").expect("answered");
        let (head, body) = response.into_parts();
        let body = tokio::time::timeout(BOUND, body.collect()).await.expect("in time").expect("a body");
        (head.status, head.headers, body.to_bytes())
    }

    /// Wait until this many Studios are live.
    pub async fn until_live(&self, count: usize) {
        until("the Studios are live", || async {
            let status = self.ask("status", json!({})).await;
            let studios = status["studios"].as_array().expect("a list");
            studios.len() == count && studios.iter().all(|studio| studio["link"] == "live")
        })
        .await;
    }
}

/// Wait for a condition, with a bound.
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, wait).await.is_ok(), "not within {BOUND:?}: {what}");
}

/// Save a file as an editor does.
#[expect(clippy::disallowed_methods, reason = "an editor is not the server")]
pub fn save(folder: &Path, path: &str, text: &str) -> PathBuf {
    let file = folder.join(path);
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
    std::fs::write(&file, text).expect("a write");
    file
}

/// Delete a file as a person does.
#[expect(clippy::disallowed_methods, reason = "a person is not the server")]
pub fn delete(folder: &Path, path: &str) {
    std::fs::remove_file(folder.join(path)).expect("it was there");
}
