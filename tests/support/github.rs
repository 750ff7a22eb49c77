//! A fake GitHub: a server on a Unix socket with as much of GitHub as `gh` needs to comment, to look for comments, and
//! to make gists. A script says how it answers each upload and each look.

use super::stage::Stage;
use super::stage_files::{make_folder, planted_keys, processes_with};
use super::tally;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The only token that the server accepts.
const TOKEN: &str = "token fake";
/// The longest comment, in characters.
const MAX_COMMENT: usize = 65_536;

/// How the server answers one upload, or one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// As GitHub does when all is well.
    Well,
    /// Answers with a status, and stores nothing.
    Status(u16),
    /// 403, as for too many requests.
    RateLimit,
    /// Stores the upload, and never answers.
    StoresOnly,
    /// Never answers, and stores nothing.
    Hangs,
    /// Stores the upload so many milliseconds later, even if the client has hung up by then, and never answers.
    Late(u64),
}

#[derive(Debug, Default)]
struct Shelves {
    comments: Vec<String>,
    gists: Vec<Value>,
    uploads: VecDeque<Does>,
    looks: VecDeque<Does>,
    asked: u32,
    may_hold_keys: bool,
    is_public: bool,
}

/// The server. It ends with the process.
pub(crate) struct GitHub {
    dir: tempfile::TempDir,
    shelves: Arc<Mutex<Shelves>>,
}

impl GitHub {
    /// Starts the server. None if `gh` is not installed: then the test counts as skipped.
    pub(crate) fn start() -> Option<GitHub> {
        if !Command::new("gh").arg("--version").output().is_ok_and(|output| output.status.success()) {
            tally::skip("there is no gh");
            return None;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let shelves = Arc::new(Mutex::new(Shelves::default()));
        let github = GitHub { dir, shelves };
        make_folder(&github.config());
        let socket = format!("http_unix_socket: {}\n", github.socket().display());
        fs::write(github.config().join("config.yml"), socket).expect("gh's configuration");
        github.listen();
        Some(github)
    }

    fn listen(&self) {
        let listener = std::os::unix::net::UnixListener::bind(self.socket()).expect("a socket");
        listener.set_nonblocking(true).expect("a listener for the runtime");
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&self.shelves));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::UnixListener::from_std(listener).expect("a listener");
                axum::serve(listener, app).await.expect("it serves until the process ends");
            });
        });
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("api")
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("gh")
    }

    /// Makes the server reachable or unreachable.
    pub(crate) fn reachable(&self, is_so: bool) {
        let away = self.dir.path().join("away");
        let (from, to) = if is_so { (away, self.socket()) } else { (self.socket(), away) };
        fs::rename(from, to).expect("moved");
    }

    /// A command prefix that gives `gh` this server and a login, and nothing of the person who runs the tests: `env`,
    /// and its arguments.
    pub(crate) fn surroundings(&self) -> Vec<String> {
        let mut words: Vec<String> = vec!["env".to_owned()];
        for name in ["GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_REPO"] {
            words.extend(["-u".to_owned(), name.to_owned()]);
        }
        let config = format!("GH_CONFIG_DIR={}", self.config().display());
        // tasuki must not pass GH_DEBUG on to gh, which would print everything that it sends.
        words.extend([
            config,
            "GH_TOKEN=fake".to_owned(),
            "GH_HOST=github.localhost".to_owned(),
            "GH_DEBUG=api".to_owned(),
        ]);
        words
    }

    /// Starts a stage's sidecar in these surroundings.
    pub(crate) fn start_sidecar(&self, stage: &Stage) {
        let words = self.surroundings();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        stage.spawn_sidecar_by(&words, "debug");
        stage.until_beating();
    }

    /// A tasuki command in these surroundings.
    pub(crate) fn command(&self, stage: &Stage, args: &[&str]) -> Command {
        let mut command = stage.command(args);
        for word in self.surroundings() {
            if let Some((name, value)) = word.split_once('=') {
                command.env(name, value);
            }
        }
        command
    }

    /// The running `gh` processes with this server.
    pub(crate) fn callers(&self) -> Vec<i32> {
        let own = format!("GH_CONFIG_DIR={}", self.config().display());
        processes_with(&own, |arguments| arguments.starts_with("gh"))
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how the next uploads are answered. After these, all is well.
    pub(crate) fn uploads(&self, script: &[Does]) {
        self.shelves().uploads = script.iter().copied().collect();
    }

    /// Sets how the next looks are answered. After these, all is well.
    pub(crate) fn looks(&self, script: &[Does]) {
        self.shelves().looks = script.iter().copied().collect();
    }

    /// Allows planted credentials in uploads, for a test in which the operator wants to publish them.
    pub(crate) fn may_hold_keys(&self) {
        self.shelves().may_hold_keys = true;
    }

    /// Makes the repository public.
    pub(crate) fn is_public(&self) {
        self.shelves().is_public = true;
    }

    /// The comments on the only issue.
    pub(crate) fn comments(&self) -> Vec<String> {
        self.shelves().comments.clone()
    }

    /// The gists.
    pub(crate) fn gists(&self) -> Vec<Value> {
        self.shelves().gists.clone()
    }

    /// Adds gists that something else has made in the same account. They are newer than all that exist.
    pub(crate) fn others(&self, count: usize) {
        for _ in 0..count {
            let note = json!({"description": "a note", "files": {"note.md": {"content": "# Note\n"}}});
            store(&self.shelves, Upload::Gist(note));
        }
    }

    /// How many uploads were tried.
    pub(crate) fn asked(&self) -> u32 {
        self.shelves().asked
    }
}

type Shared = Arc<Mutex<Shelves>>;

fn locked(shared: &Shared) -> MutexGuard<'_, Shelves> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if headers.get("authorization").and_then(|value| value.to_str().ok()) != Some(TOKEN) {
        return said(401, &json!({"message": "Requires authentication"}));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (method, uri.path()) {
        (_, "/graphql") => graphql(&shared, &body).await,
        (Method::POST, "/gists") => upload(&shared, Upload::Gist(body)).await,
        (Method::GET, "/gists") => {
            let page = Page::of(&uri);
            look(&shared, &|shelves| page.list(&shelves.gists)).await
        }
        (Method::GET, "/repos/o/r") => said(200, &json!({"private": !locked(&shared).is_public})),
        (Method::GET, "/user") => said(200, &json!({"login": "kai"})),
        (Method::GET, path) => match path.strip_prefix("/gists/") {
            Some(id) => {
                let id = id.to_owned();
                look(&shared, &|shelves| {
                    shelves.gists.iter().find(|gist| gist["id"] == *id).cloned().unwrap_or_default()
                })
                .await
            }
            None => said(404, &json!({"message": "Not Found"})),
        },
        _ => said(404, &json!({"message": "Not Found"})),
    }
}

/// The part of a list that a request asks for, by GitHub's query parameters.
struct Page {
    length: usize,
    number: usize,
    since: Option<chrono::DateTime<chrono::Utc>>,
}

impl Page {
    fn of(uri: &Uri) -> Page {
        let query = uri.query().unwrap_or_default();
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str, usual: usize| value(name).and_then(|text| text.parse().ok()).unwrap_or(usual);
        let since = value("since").map(|text| text.parse().expect("a time as GitHub takes it"));
        Page { length: number("per_page", 30).clamp(1, 100), number: number("page", 1).max(1), since }
    }

    /// This page of the gists, the newest first.
    fn list(&self, gists: &[Value]) -> Value {
        let is_new = |gist: &&Value| {
            let at = gist["updated_at"].as_str().and_then(|text| text.parse().ok());
            self.since.is_none_or(|since| at.is_some_and(|at: chrono::DateTime<chrono::Utc>| at >= since))
        };
        let found = gists.iter().rev().filter(is_new).skip((self.number - 1) * self.length);
        Value::Array(found.take(self.length).cloned().collect())
    }
}

enum Upload {
    Comment(String),
    Gist(Value),
}

async fn graphql(shared: &Shared, body: &Value) -> Response {
    let (query, variables) = (body["query"].as_str().unwrap_or_default(), &body["variables"]);
    if query.contains("mutation CommentCreate") {
        return upload(shared, Upload::Comment(variables["input"]["body"].as_str().unwrap_or_default().to_owned()))
            .await;
    }
    if query.contains("CommentsForIssue") {
        let comments = |shelves: &Shelves| {
            let node = |(at, body): (usize, &String)| json!({"id": format!("C{at}"), "author": {"login": "kai"}, "body": body, "url": comment_url(at)});
            let nodes: Vec<Value> = shelves.comments.iter().enumerate().map(node).collect();
            json!({"data": {"node": {"comments": {"nodes": nodes, "pageInfo": {"hasNextPage": false, "endCursor": ""}}}}})
        };
        return look(shared, &comments).await;
    }
    if variables["number"] != 42 {
        let message =
            format!("Could not resolve to an issue or pull request with the number of {}.", variables["number"]);
        return said(
            200,
            &json!({"data": {"repository": {"hasIssuesEnabled": true, "issue": null}}, "errors": [{"type": "NOT_FOUND", "path": ["repository", "issue"], "message": message}]}),
        );
    }
    let none = json!({"nodes": [], "pageInfo": {"hasNextPage": false, "endCursor": ""}, "totalCount": 0});
    let issue = json!({"__typename": "Issue", "id": "I_1", "number": 42, "state": "OPEN", "url": "https://github.localhost/o/r/issues/42", "comments": none});
    said(200, &json!({"data": {"repository": {"hasIssuesEnabled": true, "issue": issue}}}))
}

fn comment_url(at: usize) -> String {
    format!("https://github.localhost/o/r/issues/42#issuecomment-{}", at + 1)
}

async fn upload(shared: &Shared, what: Upload) -> Response {
    let does = {
        let mut shelves = locked(shared);
        shelves.asked += 1;
        shelves.uploads.pop_front().unwrap_or(Does::Well)
    };
    match does {
        Does::Well => said_of(&store(shared, what)),
        Does::Status(_) | Does::RateLimit | Does::Hangs => refused(does).await,
        Does::StoresOnly => {
            store(shared, what);
            refused(Does::Hangs).await
        }
        Does::Late(ms) => {
            let shared = Arc::clone(shared);
            // A client that hangs up does not stop the work.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                store(&shared, what);
            });
            refused(Does::Hangs).await
        }
    }
}

async fn look(shared: &Shared, of: &(dyn Fn(&Shelves) -> Value + Sync)) -> Response {
    let does = locked(shared).looks.pop_front().unwrap_or(Does::Well);
    if does != Does::Well {
        return refused(does).await;
    }
    let found = of(&locked(shared));
    said(200, &found)
}

async fn refused(does: Does) -> Response {
    match does {
        Does::Status(status) => said(status, &json!({"message": "No"})),
        Does::RateLimit => said(403, &json!({"message": "API rate limit exceeded for user ID 1."})),
        _ => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            said(504, &Value::Null)
        }
    }
}

fn store(shared: &Shared, what: Upload) -> (u16, Value) {
    let mut shelves = locked(shared);
    match what {
        Upload::Comment(body) if body.chars().count() > MAX_COMMENT => {
            (200, json!({"data": null, "errors": [{"message": "Body is too long (maximum is 65536 characters)"}]}))
        }
        Upload::Comment(body) => {
            shelves.comments.push(body);
            let url = comment_url(shelves.comments.len() - 1);
            (200, json!({"data": {"addComment": {"commentEdge": {"node": {"url": url}}}}}))
        }
        Upload::Gist(mut gist) => {
            let id = format!("{:08x}", 0xabc0 + shelves.gists.len());
            gist["html_url"] = json!(format!("https://gist.github.localhost/{id}"));
            gist["id"] = json!(id);
            gist["updated_at"] = json!(chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
            shelves.gists.push(gist.clone());
            (201, gist)
        }
    }
}

fn said_of((status, body): &(u16, Value)) -> Response {
    said(*status, body)
}

fn said(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).expect("a response")
}

impl Drop for GitHub {
    fn drop(&mut self) {
        if std::thread::panicking() || self.shelves().may_hold_keys {
            return;
        }
        let bodies = format!("{:?}{:?}", self.comments(), self.gists());
        assert!(planted_keys().iter().all(|key| !bodies.contains(key)), "a planted credential was published: {bodies}");
    }
}
