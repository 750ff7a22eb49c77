//! The two addresses that need no token: at one the server proves that it knows the token, at the other a page
//! exchanges its code for the token.

use super::app::ServeApp;
use super::problem::{Problem, json as answer};
use super::token::Secret;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Response, header};
use axum::response::IntoResponse;
use serde_json::json;
use std::sync::Arc;

/// The guard lets these addresses pass without a token.
pub(super) const PROOF: &str = "/api/proof";
/// See [`PROOF`].
pub(super) const SESSION: &str = "/api/session";
/// How long a nonce may be, in letters and digits.
const NONCE: std::ops::RangeInclusive<usize> = 16..=128;

/// The nonce and the secret that `GET /api/proof?nonce=…&of=token|code` names; none if the query is invalid.
fn question(query: &str) -> Option<(&str, Secret)> {
    let (mut nonce, mut of) = (None, None);
    for field in query.split('&') {
        match field.split_once('=')? {
            ("nonce", value) if nonce.is_none() => nonce = Some(value),
            ("of", "token") if of.is_none() => of = Some(Secret::Token),
            ("of", "code") if of.is_none() => of = Some(Secret::Code),
            _ => return None,
        }
    }
    let is_fit = |nonce: &&str| NONCE.contains(&nonce.len()) && nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
    Some((nonce.filter(is_fit)?, of.unwrap_or(Secret::Token)))
}

/// Proves that this server knows the token or the code: `HMAC-SHA256(secret, "tasuki serve\\n<Host>\\n<nonce>")`.
pub(super) async fn prove(
    State(app): State<Arc<ServeApp>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let Some((nonce, secret)) = question(query.as_deref().unwrap_or_default()) else {
        let hint = "?nonce=<16 to 128 letters and digits>, and &of=token or &of=code";
        return Problem::bad("The query is invalid").hint(hint).into_response();
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    match app.token.prove(secret, &host, nonce) {
        Some(proof) => answer(200, &json!({ "proof": proof })),
        None => bad_code(),
    }
}

/// `POST /api/session` with `Authorization: Code <code>`: the token, once.
pub(super) async fn enter(State(app): State<Arc<ServeApp>>, headers: HeaderMap) -> Response<Body> {
    let said = headers.get(header::AUTHORIZATION).and_then(|said| said.as_bytes().strip_prefix(b"Code "));
    match said.is_some_and(|said| app.token.redeem(said.trim_ascii())) {
        true => answer(200, &json!({ "token": app.token.text() })),
        false => bad_code(),
    }
}

fn bad_code() -> Response<Body> {
    Problem::new(401, "bad_code", "This code is unknown, already used or expired")
        .hint("Restart `tasuki serve`, or take the token from state/serve.token in tasuki's home")
        .into_response()
}
