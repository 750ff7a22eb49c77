//! The page: files that are compiled in. They contain no secret, and everybody may load them.

use super::app::ServeApp;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use axum::routing::get;
use std::borrow::Cow;
use std::sync::Arc;

/// A file of the page: its address, and its text.
type PageFile = (&'static str, &'static str);

macro_rules! files {
    ($($name:literal),+) => {
        [$((concat!("/", $name), include_str!(concat!("../../../data/page/", $name)))),+]
    };
}

/// The address of the page itself.
const HTML: PageFile = ("/", include_str!("../../../data/page/page.html"));
/// What the page loads: its style sheet and its modules, one subject each.
const LOADED: &[PageFile] = &files![
    "page.css",
    "page.js",
    "agents.js",
    "api.js",
    "cards.js",
    "dom.js",
    "errors.js",
    "filter.js",
    "forms.js",
    "handoffs.js",
    "hosts.js",
    "keys.js",
    "lineage.js",
    "live.js",
    "markdown.js",
    "needs.js",
    "reading.js",
    "replies.js",
    "roster.js",
    "route.js",
    "steps.js",
    "store.js",
    "work.js"
];

/// The page's `<html>` tag, and the same tag with the attribute that makes the page show the other hosts of the fleet
/// too.
const ROOT: [&str; 2] = ["<html lang=\"en\">", "<html lang=\"en\" data-all-hosts>"];

/// The addresses of all files.
pub(super) fn routes(all_hosts: bool) -> Router<Arc<ServeApp>> {
    std::iter::once(&HTML).chain(LOADED).fold(Router::new(), |router, (address, text)| {
        router.route(address, get(move || async move { file(address, shown(address, text, all_hosts)) }))
    })
}

/// A file's text as it is sent. Only the page itself is changed, if it shows all hosts.
fn shown(address: &str, text: &'static str, all_hosts: bool) -> Cow<'static, str> {
    let [usual, marked] = ROOT;
    if all_hosts && address == HTML.0 { text.replacen(usual, marked, 1).into() } else { text.into() }
}

fn file(address: &str, text: Cow<'static, str>) -> Response<Body> {
    let kind = match address.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "text/html; charset=utf-8",
    };
    let mut response = Response::new(Body::from(text.into_owned()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/page");
        let there = std::fs::read_dir(folder).expect("the page").map(|entry| {
            let name = entry.expect("a file").file_name();
            format!("/{}", name.to_string_lossy()).replace("/page.html", "/")
        });
        let served = std::iter::once(&HTML).chain(LOADED).map(|(address, _)| (*address).to_owned());
        assert_eq!(served.collect::<BTreeSet<_>>(), there.collect::<BTreeSet<_>>());
    }

    #[test]
    fn the_page_is_marked_where_it_shows_other_hosts_and_only_there() {
        let [usual, marked] = ROOT;
        assert!(HTML.1.contains(usual) && shown(HTML.0, HTML.1, true).contains(marked));
        assert!(!shown(HTML.0, HTML.1, false).contains("data-all-hosts"));
    }

    #[test]
    fn each_file_has_its_type() {
        for (address, kind) in [("/", "text/html"), ("/dom.js", "text/javascript"), ("/page.css", "text/css")] {
            let response = file(address, "".into());
            assert!(response.headers()[header::CONTENT_TYPE].as_bytes().starts_with(kind.as_bytes()), "{address}");
        }
    }
}
