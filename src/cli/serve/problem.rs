//! Answers as JSON, and the error of a request that was not carried out.

use crate::cli::error::CliError;
use crate::contract::ResultFile;
use crate::contract::answer::RefusedView;
use crate::core::text::{plain_json, sentence};
use crate::exit;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Why a request was not carried out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Problem {
    #[serde(skip)]
    status: u16,
    /// The message: one sentence.
    pub error: String,
    /// The error code.
    pub code: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The field of the request that is wrong, if it is one field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The request's id, if the request may still be carried out. Its answer will be at `GET /api/requests/<id>`, or
    /// for another host at `GET /api/hosts/<host>/requests/<id>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Problem {
    pub(super) fn new(status: u16, code: &str, error: impl Into<String>) -> Self {
        let (error, code) = (error.into(), code.to_owned());
        Problem { status, error, code, hint: None, field: None, request_id: None }
    }

    pub(super) fn bad(error: impl Into<String>) -> Self {
        Problem::new(400, "bad_request", error)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(sentence(&hint.into()));
        self
    }

    pub(super) fn field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// Adds the id with which the client can ask for the answer later.
    pub(super) fn request(mut self, id: &impl ToString) -> Self {
        self.request_id = Some(id.to_string());
        self
    }

    /// A refusal by the sidecar, with its message as `error`.
    pub(super) fn refused(answer: &ResultFile) -> Self {
        let RefusedView { code, message, hint, field, .. } = answer.error.clone().unwrap_or_default();
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        Problem {
            status: status_of(answer),
            error: text(Some(message)).unwrap_or_else(|| "The sidecar refused and gave no reason".to_owned()),
            code: text(Some(code)).unwrap_or_else(|| "failed".to_owned()),
            hint: text(hint),
            field: text(field),
            request_id: None,
        }
    }
}

/// The HTTP status for a result file: its own, or 502 if that is not between 200 and 599.
pub(super) fn status_of(answer: &ResultFile) -> u16 {
    Some(answer.status).filter(|status| (200..600).contains(status)).unwrap_or(502)
}

impl From<CliError> for Problem {
    fn from(error: CliError) -> Self {
        let status = match error.exit {
            exit::UNAVAILABLE | exit::TRY_AGAIN => 503,
            _ => 500,
        };
        Problem { hint: error.hint, ..Problem::new(status, &error.code, error.message) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let mut response = json(self.status, &serde_json::to_value(&self).unwrap_or_default());
        let headers = response.headers_mut();
        if self.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tasuki\""));
        }
        if self.status == 503 {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

/// An answer in JSON, without characters that could control a terminal on which it is printed.
pub(super) fn json(status: u16, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(plain_json(&value.to_string()).into_owned()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
