//! The catalogue: one row a tool. A tool that Studio's plugin carries out is one row and its args.

use std::{fmt::Display, pin::Pin, sync::Arc, time::Duration};

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    answers::{MAX_TEXT, Problem, Project, RunCode, Script, Server, Status, Verdict},
    args::{GetConsoleOutputArgs, GetScriptArgs, RunCodeArgs, StatusArgs, parse},
    backend::{Backend, ProgressSink},
    get_call::get_call,
    journal::cut_off_problem,
    operations::claim,
    playing,
    printed::{ConsoleEntry, ConsoleOutput, bound},
    schema, syncing,
};
use crate::{
    core::{
        bridge::{Answer, Ask, Call, StudioScript},
        console::{Level, Line, Page, Query},
        error::ToolError,
        ids::NodeId,
        text::TextHash,
    },
    deletions::is_about_files_alone,
    pairing::RefusedStudio,
    session::Target,
    store::StoreProblem,
};

/// How long `status` waits; it needs no Studio.
pub(super) const STATUS_PATIENCE: Duration = Duration::from_secs(2);
/// How long a read waits for Studio.
pub(super) const READ_PATIENCE: Duration = Duration::from_secs(10);
/// How long `run_code` waits unless it says otherwise.
const CODE_PATIENCE: Duration = Duration::from_secs(30);
/// How many lines of output an answer has unless it says otherwise.
const CONSOLE_LINES: usize = 200;
/// How many it can have.
const MAX_CONSOLE_LINES: usize = 1000;

/// Whether a tool changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only looks.
    Read,
    /// It may change files or Studio.
    Change,
}

/// An answer in both of its forms.
pub struct Answered {
    /// For programs.
    pub structure: Value,
    /// For models and people.
    pub text: String,
}

/// A tool at work.
pub(super) type Running = Pin<Box<dyn Future<Output = Result<Answered, ToolError>> + Send>>;
type Run = Box<dyn Fn(Arc<Backend>, Value, Option<ProgressSink>) -> Running + Send + Sync>;

/// One tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it is for.
    pub description: String,
    /// Whether it changes anything.
    pub kind: Kind,
    /// The schema of its arguments.
    pub input: Arc<JsonObject>,
    /// The schema of its answer.
    pub output: Arc<JsonObject>,
    /// The work.
    pub run: Run,
}

impl Tool {
    fn new<A, T, F>(
        name: &'static str,
        title: &'static str,
        kind: Kind,
        work: impl Fn(Arc<Backend>, A, Option<ProgressSink>) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + Display,
        F: Future<Output = Result<T, ToolError>> + Send + 'static,
    {
        let (input, description) = schema::input::<A>();
        let output = schema::output::<T>();
        let run: Run = Box::new(move |backend, args, progress| {
            Box::pin(async move {
                let answer = work(backend, parse(args)?, progress).await?;
                let structure = serde_json::to_value(&answer).expect("answers hold only what JSON can say");
                Ok(Answered { structure, text: answer.to_string() })
            })
        });
        Self { name, title, description, kind, input: Arc::new(input), output: Arc::new(output), run }
    }

    /// The hints that clients show or act on.
    pub fn annotations(&self) -> ToolAnnotations {
        let reads = self.kind == Kind::Read;
        ToolAnnotations::with_title(self.title).read_only(reads).destructive(!reads).idempotent(reads).open_world(false)
    }
}

/// All tools, the same on every connection, with or without a Studio.
pub fn catalogue() -> Vec<Tool> {
    vec![
        Tool::new("status", "Status", Kind::Read, status),
        Tool::new("sync", "Sync files and Studio", Kind::Change, syncing::run_sync),
        Tool::new("resolve", "Settle a conflict", Kind::Change, syncing::resolve),
        Tool::new("undo", "Take a sync back", Kind::Change, syncing::undo),
        Tool::new("get_script", "Read a script in Studio", Kind::Read, get_script),
        Tool::new("run_code", "Run Luau in Studio", Kind::Change, run_code),
        Tool::new("get_console_output", "Studio's output", Kind::Read, get_console_output),
        Tool::new("get_call", "What became of a call", Kind::Read, get_call),
        Tool::new("get_studio_mode", "Studio's mode", Kind::Read, playing::get_studio_mode),
        Tool::new("start_stop_play", "Start, stop or restart a play test", Kind::Change, playing::start_stop_play),
        Tool::new("run_script_in_play_mode", "Run Luau in play mode", Kind::Change, playing::run_script_in_play_mode),
    ]
}

async fn status(
    backend: Arc<Backend>,
    StatusArgs {}: StatusArgs,
    _progress: Option<ProgressSink>,
) -> Result<Status, ToolError> {
    let ask = Ask::Status(backend.hub.owner());
    let Answer::Status { studios, waiting } = backend.call(None, STATUS_PATIENCE, ask, None).await? else {
        return Err(wrong_answer("status"));
    };
    let project = backend.session.project();
    let problems = backend.session.problems().into_iter();
    let mut problems: Vec<Problem> =
        problems.map(|problem| Problem { what: problem.to_string(), next: problem.hint().into() }).collect();
    problems.extend(
        backend.store.problem().map(|StoreProblem { what, next }| Problem { what: what.clone(), next: next.clone() }),
    );
    problems.extend(cut_off(&backend).await?);
    problems.extend(backend.pairing.refused_of_late().iter().map(refused_problem));
    if studios.is_empty() {
        let ToolError { message, hint, .. } = ToolError::no_studio();
        problems.push(Problem { what: message, next: hint });
    }
    Ok(Status {
        project: Project { name: project.name.clone(), folder: project.folder.display().to_string() },
        server: Server { version: backend.server.version.clone(), url: backend.server.url.clone() },
        studios,
        calls: waiting,
        problems,
    })
}

/// A Studio that was not let in. The code that would let it in is for the person alone.
fn refused_problem(refused: &RefusedStudio) -> Problem {
    let next = "ask the person to run `rojo-mcp status` in a terminal: it shows the code to type in the plugin's \
        window; or to run `rojo-mcp plugin install` there and start Studio again";
    Problem { what: refused.sentence(), next: next.to_owned() }
}

/// Syncs whose end nobody saw.
async fn cut_off(backend: &Backend) -> Result<Vec<Problem>, ToolError> {
    let store = backend.store.clone();
    let read = tokio::task::spawn_blocking(move || store.cut_off_entries());
    let entries = read.await.map_err(|_| ToolError::failed("reading the journal failed", "report this"))??;
    let unsettled = entries.iter().filter(|entry| !is_about_files_alone(&entry.entry));
    Ok(unsettled.map(|entry| cut_off_problem(entry.id, &entry.entry)).collect())
}

async fn get_script(
    backend: Arc<Backend>,
    args: GetScriptArgs,
    progress: Option<ProgressSink>,
) -> Result<Script, ToolError> {
    let lines = wanted_lines(args.lines.as_deref())?;
    backend.catch_up().await?;
    let id = find_script(&backend, &args)?;
    let ask = Ask::GetScript { id, from_draft: args.from_draft };
    let Answer::Script { script, base } = backend.call(args.studio, READ_PATIENCE, ask, progress).await? else {
        return Err(wrong_answer("get_script"));
    };
    let look = backend.session.look(&[id]).1.into_iter().flatten().next();
    let disk = look.as_ref().and_then(|look| look.hash);
    let fs_path = look.and_then(|look| look.fs_path).map(|path| path.to_string_lossy().replace('\\', "/"));
    Ok(Script { warning: backend.session.warning(), ..script_answer(script, base, disk, fs_path, lines) })
}

fn find_script(backend: &Backend, args: &GetScriptArgs) -> Result<NodeId, ToolError> {
    match (&args.id, &args.fs_path, &args.path) {
        (Some(id), None, None) => {
            id.parse().map_err(|error| ToolError::bad_arguments(format!("argument `id`: {error}")))
        }
        (None, Some(path), None) => {
            let folder = backend.session.project().folder.clone();
            let path = crate::core::paths::relative_to(&folder, path).unwrap_or_else(|| path.clone());
            backend.find_one(&Target::FsPath(&path))
        }
        (None, None, Some(path)) => backend.find_one(&Target::InstancePath(path)),
        _ => Err(ToolError::bad_arguments("give exactly one of `id`, `fsPath` and `path`")),
    }
}

fn wanted_lines(lines: Option<&[usize]>) -> Result<Option<(usize, usize)>, ToolError> {
    match lines {
        None => Ok(None),
        Some([from, to]) if 1 <= *from && from <= to => Ok(Some((*from, *to))),
        Some(_) => Err(ToolError::bad_arguments("argument `lines`: give the first and the last line, from 1")),
    }
}

fn script_answer(
    script: StudioScript,
    base: Option<TextHash>,
    disk: Option<TextHash>,
    fs_path: Option<String>,
    lines: Option<(usize, usize)>,
) -> Script {
    let studio: Option<TextHash> = script.studio_hash.parse().ok();
    let verdict = match (disk, studio, base) {
        (Some(disk), Some(studio), _) if disk == studio => Verdict::Equal,
        (Some(_), Some(studio), Some(base)) if base == studio => Verdict::FileChanged,
        (Some(disk), Some(_), Some(base)) if base == disk => Verdict::StudioChanged,
        (Some(_), Some(_), Some(_)) => Verdict::BothChanged,
        _ => Verdict::Unknown,
    };
    let all: Vec<&str> = script.source.split_inclusive('\n').collect();
    let (from, to) = lines.unwrap_or((1, all.len().max(1)));
    let mut source = String::new();
    let mut last = from - 1;
    for line in all.iter().take(to).skip(from - 1) {
        if source.len() + line.len() > MAX_TEXT && !source.is_empty() {
            break;
        }
        source.push_str(line);
        last += 1;
    }
    let truncated = from > 1 || last < all.len();
    Script {
        source,
        studio_hash: script.studio_hash,
        disk_hash: disk.map(|hash| hash.to_string()),
        verdict,
        class_name: script.class_name,
        instance_path: script.instance_path,
        fs_path,
        is_draft: script.is_draft,
        total_lines: all.len(),
        first_line: from,
        truncated,
        next: (last < all.len()).then_some(last + 1),
        warning: None,
    }
}

async fn run_code(
    backend: Arc<Backend>,
    args: RunCodeArgs,
    progress: Option<ProgressSink>,
) -> Result<RunCode, ToolError> {
    let patience = code_patience(args.timeout)?;
    let target = args.target.unwrap_or_default();
    let claim = claim("run_code", args.operation_id.as_deref(), &(&args.studio, target, &args))?;
    let ask = Ask::Tool { name: "run_code", args: to_json(&args), changes: true, target };
    let call = Call { studio: args.studio, patience, ask, operation: claim };
    match backend.change(call, progress).await? {
        Answer::Tool(response) => run_code_answer(response),
        _ => Err(wrong_answer("run_code")),
    }
}

/// How long code may take.
pub(super) fn code_patience(timeout: Option<f64>) -> Result<Duration, ToolError> {
    match timeout {
        None => Ok(CODE_PATIENCE),
        Some(seconds) if (1.0..=600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Some(_) => Err(ToolError::bad_arguments("argument `timeout`: from 1 to 600 seconds")),
    }
}

/// The plugin's response as agents see it.
pub(super) fn run_code_answer(response: Value) -> Result<RunCode, ToolError> {
    match response {
        Value::String(text) => Ok(RunCode::from_text(text).bounded()),
        response => read_response(response).map(RunCode::bounded),
    }
}

pub(super) fn to_json(args: &impl Serialize) -> Value {
    serde_json::to_value(args).expect("arguments came from JSON")
}

async fn get_console_output(
    backend: Arc<Backend>,
    args: GetConsoleOutputArgs,
    progress: Option<ProgressSink>,
) -> Result<ConsoleOutput, ToolError> {
    let limit = args.limit.unwrap_or(CONSOLE_LINES);
    if !(1..=MAX_CONSOLE_LINES).contains(&limit) {
        let text = format!("argument `limit`: from 1 to {MAX_CONSOLE_LINES} lines");
        return Err(ToolError::bad_arguments(text));
    }
    let query = Query {
        since: args.since,
        level: args.level.unwrap_or(Level::Output),
        limit,
        dedupe: args.dedupe.unwrap_or(true),
    };
    let ask = Ask::Console { target: args.target.unwrap_or_default(), query };
    let answer = backend.call(args.studio, READ_PATIENCE, ask, progress).await?;
    match answer {
        Answer::Console(page) => Ok(console_answer(&backend, page)),
        Answer::Tool(response) => {
            let text = response.as_str().map_or_else(|| response.to_string(), str::to_owned);
            let line = Line { level: Level::Output, text, stack: Vec::new(), count: 1 };
            Ok(console_answer(&backend, Page { lines: vec![line], next: 0, dropped: 0, left: 0 }))
        }
        _ => Err(wrong_answer("get_console_output")),
    }
}

fn console_answer(backend: &Backend, page: Page) -> ConsoleOutput {
    let mut room = MAX_TEXT;
    let entries = page
        .lines
        .into_iter()
        .map(|mut line| {
            let at = file_and_line(backend, &line.text);
            bound(&mut line, &mut room);
            ConsoleEntry { line, at }
        })
        .collect();
    ConsoleOutput { entries, next: page.next, dropped: page.dropped, left: page.left }
}

/// The file that a message such as `ServerScriptService.Main:12: boom` is about.
fn file_and_line(backend: &Backend, text: &str) -> Option<String> {
    let (path, rest) = text.split_once(':')?;
    let line: u32 = rest.split(':').next()?.trim().parse().ok()?;
    let [id] = backend.session.find(&Target::InstancePath(path))[..] else { return None };
    let file = backend.session.look(&[id]).1.into_iter().flatten().next()?.fs_path?;
    Some(format!("{}:{line}", file.to_string_lossy().replace('\\', "/")))
}

/// Our own plugin's response, as the answer's type demands.
pub(super) fn read_response<T: DeserializeOwned>(response: Value) -> Result<T, ToolError> {
    parse(response).map_err(|error| {
        let next = "update the plugin: its version and the server's differ";
        ToolError::failed(format!("the plugin's answer is malformed: {}", error.message), next)
    })
}

pub(super) fn wrong_answer(tool: &str) -> ToolError {
    ToolError::failed(format!("{tool} got the answer of another call"), "this is a fault of the server; report it")
}
