//! Refusals that the bridge itself gives as answers: to requests of this host that can't be sent, and to requests of
//! other hosts.

use crate::contract::ResultFile;
use crate::contract::answer::RefusedView;
use crate::core::text::sha256;

/// The name of the part of a letter that holds the request or the result itself. The other parts are attachments.
pub(super) const MAIN_PART: &str = "request.json";

/// A refusal: status, code and words of the answer.
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

    /// The result file with this refusal. `request`: the bytes of the request. `at`: the time of the answer.
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
