//! The page: three files that are compiled in. They contain no secret, and everybody may load them.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};

/// `GET /`.
pub(super) async fn html() -> Response<Body> {
    file("text/html; charset=utf-8", include_str!("../../../data/page/page.html"))
}

/// `GET /page.js`.
pub(super) async fn script() -> Response<Body> {
    file("text/javascript; charset=utf-8", include_str!("../../../data/page/page.js"))
}

/// `GET /page.css`.
pub(super) async fn style() -> Response<Body> {
    file("text/css; charset=utf-8", include_str!("../../../data/page/page.css"))
}

fn file(kind: &'static str, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
