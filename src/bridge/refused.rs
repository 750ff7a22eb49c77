//! Why this host itself answers a request to another host, and does not send it.

use crate::contract::ResultFile;
use crate::contract::answer::RefusedView;
use crate::core::text::sha256;

/// The name of the part that is the request or the result itself.
pub(super) const MAIN_PART: &str = "request.json";

/// Why a request gets its answer from this host itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetRefused {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl FleetRefused {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> FleetRefused {
        FleetRefused { status, code, message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> FleetRefused {
        FleetRefused { hint: Some(hint.into()), ..self }
    }

    /// As the answer to a request. `request`: its bytes.
    pub(super) fn result(&self, id: &str, kind: Option<&str>, request: &[u8], at: &str) -> ResultFile {
        let FleetRefused { status, code, message, hint } = self.clone();
        ResultFile {
            v: 1,
            request_id: id.to_owned(),
            kind: kind.map(str::to_owned),
            status,
            ok: false,
            result: None,
            error: Some(RefusedView { code: code.to_owned(), message, hint, ..RefusedView::default() }),
            at: at.to_owned(),
            request_sha256: sha256(request),
        }
    }
}
