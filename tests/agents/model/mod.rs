//! The model that real agents talk to in these tests: it listens on loopback, speaks the four dialects that the CLIs
//! speak, does what a script says, and remembers every prompt that it was given.
//!
//! `asked` reads what a CLI asks, whatever the dialect; `script` decides the answer; `speak` says it in the dialect;
//! `limits` refuses as each service does whose account is used up.

mod asked;
mod limits;
pub(crate) mod script;
mod speak;

use asked::Asked;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most that a request may hold, in bytes.
const MAX_REQUEST: usize = 16 << 20;
/// Bytes of an answer that may wait for a slow reader.
const PIPE: usize = 64 * 1024;

/// One request of the real work of an agent; what CLIs ask beside it, such as for a title, is left out.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// What the user said in this conversation, first to last.
    pub(crate) prompts: Vec<String>,
    /// The result of a tool, if that is what came last.
    pub(crate) tool_result: Option<String>,
    /// What was answered, in a few words.
    pub(crate) answered: String,
    /// When, counted from the start of the model, in seconds.
    pub(crate) at: f32,
}

/// A rule of the script: a prompt that has `needle` in it is answered as if it had `directives` in it too.
#[derive(Debug, Clone)]
struct Rule {
    needle: String,
    directives: String,
    times: u32,
}

#[derive(Debug)]
struct Shared {
    heard: Mutex<Vec<Heard>>,
    rules: Mutex<Vec<Rule>>,
    started: Instant,
}

/// The model. It ends with the process.
#[derive(Debug)]
pub(crate) struct Model {
    /// Where it listens, on 127.0.0.1.
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Model {
    /// Begins to listen on a free port of the loopback device.
    pub(crate) fn start() -> Model {
        let shared = Arc::new(Shared { heard: Mutex::default(), rules: Mutex::default(), started: Instant::now() });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        listener.set_nonblocking(true).expect("a listener for the runtime");
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&shared));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("inside the runtime");
                axum::serve(listener, app).await.expect("it serves until the process ends");
            });
        });
        Model { port, shared }
    }

    /// From now on, prompts with `needle` in them are answered by these directives (see `script`), so many times.
    pub(crate) fn on(&self, needle: &str, directives: &str, times: u32) {
        let rule = Rule { needle: needle.to_owned(), directives: directives.to_owned(), times };
        lock(&self.shared.rules).push(rule);
    }

    /// Looks at everything that was heard so far.
    pub(crate) fn look<T>(&self, with: impl FnOnce(&[Heard]) -> T) -> T {
        with(&lock(&self.shared.heard))
    }

    /// Everything that was heard so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        lock(&self.shared.heard).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The directives of the first rule that fits and is not used up.
fn ruled(shared: &Shared, prompt: &str) -> String {
    let mut rules = lock(&shared.rules);
    let rule = rules.iter_mut().find(|rule| rule.times > 0 && prompt.contains(&rule.needle));
    rule.map_or_else(String::new, |rule| {
        rule.times -= 1;
        rule.directives.clone()
    })
}

async fn answer(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, body: Body) -> Response {
    let path = uri.path().to_owned();
    let Ok(bytes) = axum::body::to_bytes(body, MAX_REQUEST).await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, &json!({}));
    };
    if method == Method::GET && path.ends_with("/models") {
        let one = json!({"id": "scripted-model", "object": "model", "type": "model", "display_name": "Scripted"});
        return plain(StatusCode::OK, &json!({"object": "list", "data": [one], "models": []}));
    }
    if path.ends_with(":countTokens") {
        return plain(StatusCode::OK, &json!({"totalTokens": bytes.len() / 4}));
    }
    if path.ends_with("/count_tokens") {
        return plain(StatusCode::OK, &json!({"input_tokens": bytes.len() / 4}));
    }
    match asked::read(&path, &bytes) {
        Some(asked) if method == Method::POST => reply(&shared, asked, &bytes),
        _ => plain(StatusCode::NOT_FOUND, &json!({"error": {"type": "not_found_error", "message": "not found"}})),
    }
}

fn reply(shared: &Shared, asked: Asked, bytes: &Bytes) -> Response {
    let ruled = if asked.is_side || asked.tool_result.is_some() { String::new() } else { ruled(shared, asked.last()) };
    let answer = script::decide(&asked, &ruled, bytes.len());
    if !asked.is_side {
        let (prompts, tool_result) = (asked.prompts.clone(), asked.tool_result.clone());
        let at = shared.started.elapsed().as_secs_f32();
        lock(&shared.heard).push(Heard { prompts, tool_result, answered: answer.words(), at });
    }
    if let script::Kind::Error(code) = answer.kind {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = json!({"type": "api_error", "message": "scripted error", "code": code});
        return plain(status, &json!({"type": "error", "error": error}));
    }
    if let script::Kind::UsedUp(seconds) = answer.kind {
        let refusal = limits::refusal(asked.dialect, seconds);
        let mut response = plain(refusal.status, &refusal.body);
        for (name, value) in refusal.headers {
            response.headers_mut().insert(name, value.parse().expect("a plain value"));
        }
        return response;
    }
    let (writer, reader) = tokio::io::duplex(PIPE);
    tokio::spawn(async move {
        // The reader may go at any time: a CLI that is interrupted hangs up.
        let _ = speak::speak(writer, &asked, &answer).await;
    });
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header(header::CACHE_CONTROL, "no-cache")
        .body(Body::from_stream(tokio_util::io::ReaderStream::new(reader)))
        .expect("a plain response")
}

fn plain(status: StatusCode, value: &Value) -> Response {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(value.to_string()))
        .expect("a plain response")
}
