//! Refusals that the bridge itself gives as answers: to requests of this host that can't be sent, and to requests of
//! other hosts.

use crate::contract::ResultFile;
use crate::contract::answer::RefusedView;
use crate::core::text::sha256;

/// The name of the part of a letter that holds the request or the result itself. The other parts are attachments.
pub(super) const MAIN_PART: &str = "request.json";

/// A refusal: status, code and words of the answer, and what is wrong in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetRefused {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The field that is wrong, if it is a single field.
    pub(super) field: Option<&'static str>,
    /// The line and column from which on the file can't be read, counted from 1.
    pub(super) place: Option<(u64, u64)>,
}

impl FleetRefused {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> FleetRefused {
        FleetRefused { status, code, message: message.into(), hint: None, field: None, place: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> FleetRefused {
        FleetRefused { hint: Some(hint.into()), ..self }
    }

    pub(super) fn field(self, field: &'static str) -> FleetRefused {
        FleetRefused { field: Some(field), ..self }
    }

    pub(super) fn place(self, line: u64, column: u64) -> FleetRefused {
        FleetRefused { place: Some((line, column)), ..self }
    }

    /// Whether the same file may be taken at another time.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    /// The result file with this refusal. `request`: the bytes of the request. `at`: the time of the answer.
    pub(super) fn result(&self, id: &str, kind: Option<&str>, request: &[u8], at: &str) -> ResultFile {
        let FleetRefused { status, code, message, hint, field, place } = self.clone();
        let (field, (line, column)) = (field.map(str::to_owned), place.unzip());
        ResultFile {
            v: 1,
            request_id: id.to_owned(),
            kind: kind.map(str::to_owned),
            status,
            ok: false,
            result: None,
            error: Some(RefusedView {
                code: code.to_owned(),
                message,
                hint,
                field,
                line,
                column,
                ..RefusedView::default()
            }),
            at: at.to_owned(),
            request_sha256: sha256(request),
        }
    }
}
