//! Decides which requests pass. That the server listens on loopback keeps nobody out: every program of every user of
//! this machine can reach it, and so can every web page that a browser opens. Therefore:
//!
//! - The `Host` header must name this server. Otherwise any page whose own name resolves to loopback could ask.
//! - If `Origin` says that a page asks, it must be our own page.
//! - Every address under `/api` needs the token, except the two of `login`. The page's files need none.

use super::app::ServeApp;
use super::login;
use super::problem::Problem;
use super::slots::ConnectionSlot;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use axum::middleware::Next;
use axum::response::IntoResponse;
use std::net::SocketAddr;
use std::sync::Arc;

/// The security headers of every answer: no content from other sites, no requests to them, no framing.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Lets a request pass or refuses it, and sets the headers of every answer.
pub(super) async fn guard(State(app): State<Arc<ServeApp>>, request: Request<Body>, next: Next) -> Response<Body> {
    let mut response = match check(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn check(app: &ServeApp, request: &Request<Body>) -> Result<(), Problem> {
    let headers = request.headers();
    check_host(app.address, request)?;
    check_origin(app.address, headers)?;
    let path = request.uri().path();
    if path == login::PROOF || path == login::SESSION {
        return Ok(());
    }
    if path != "/api" && !path.starts_with("/api/") {
        return Ok(());
    }
    let said = one(headers, &header::AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
    if said.is_some_and(|said| app.token.is(said)) {
        return match request.extensions().get::<Arc<ConnectionSlot>>().is_none_or(|place| place.admit()) {
            true => Ok(()),
            false => Err(Problem::new(503, "too_many", "Too many connections are open")
                .hint("Close some of them, or try again later")),
        };
    }
    Err(Problem::new(401, "no_token", "This address needs `Authorization: Bearer <token>`")
        .hint("The token is in state/serve.token in tasuki's home"))
}

/// The host must be ours in the `Host` header, and also in the request's address if that names a host.
fn check_host(ours: SocketAddr, request: &Request<Body>) -> Result<(), Problem> {
    let named = one(request.headers(), &header::HOST).and_then(|value| value.to_str().ok());
    let is_ours = named.is_some_and(|host| is_our_host(ours, host));
    let asked = request.uri().authority().is_none_or(|authority| is_our_host(ours, authority.as_str()));
    if is_ours && asked {
        return Ok(());
    }
    Err(Problem::new(403, "bad_host", "The Host header names another host than this server")
        .hint(format!("Use http://{ours}/ or http://localhost:{}/", ours.port())))
}

/// A browser names the page that asks in `Origin`. Only our own page may ask.
fn check_origin(ours: SocketAddr, headers: &HeaderMap) -> Result<(), Problem> {
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = one(headers, &header::ORIGIN).and_then(|value| value.to_str().ok());
    match origin.and_then(|origin| origin.strip_prefix("http://")).is_some_and(|host| is_our_host(ours, host)) {
        true => Ok(()),
        false => Err(Problem::new(403, "bad_origin", "Pages from other origins may not send requests to this server")),
    }
}

/// The value of a header that occurs exactly once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

/// Whether `host:port` names the address that we listen on, by its number or as `localhost`. A browser leaves port 80
/// out.
fn is_our_host(ours: SocketAddr, host: &str) -> bool {
    let names = [ours.to_string(), format!("localhost:{}", ours.port())];
    names.iter().any(|name| {
        let bare = name.strip_suffix(":80").unwrap_or(name);
        host.eq_ignore_ascii_case(name) || host.eq_ignore_ascii_case(bare)
    })
}

/// The token in `Authorization: Bearer <token>`; none for another scheme.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let ours: SocketAddr = "127.0.0.1:7311".parse().expect("an address");
        for fine in ["127.0.0.1:7311", "localhost:7311", "LOCALHOST:7311"] {
            assert!(is_our_host(ours, fine), "{fine}");
        }
        for wrong in
            ["127.0.0.1", "localhost", "localhost:80", "evil.example:7311", "127.0.0.1:7311.evil", "", "[::1]:7311"]
        {
            assert!(!is_our_host(ours, wrong), "{wrong}");
        }
        assert!(is_our_host("[::1]:80".parse().expect("an address"), "[::1]"));
    }

    #[test]
    fn the_scheme_is_read_in_any_case_and_no_other_is_taken() {
        assert_eq!(bearer(b"bEaReR abc "), Some(&b"abc"[..]));
        for wrong in [&b"Basic abc"[..], b"Bearer", b"abc", b""] {
            assert_eq!(bearer(wrong), None);
        }
    }
}
