//! Gathers what [`judge`] must know about a request from another host, and puts refusals into words.

use super::answers::KnownRequest;
use super::personas;
use super::refused::FleetRefused;
use super::state::Bridge;
use crate::core::host::HostName;
use crate::core::id::RequestId;
use crate::core::time::millis;
use crate::fleet::answering::{FleetRefusal, Judged, LetterContext, judge, on_its_way_since};
use crate::fleet::rights::{RIGHTS, VIEW};
use crate::fleet::{Header, LetterPart, Member, Right};
use crate::spool::MAX_INPUT_BYTES;
use crate::spool::client::{SidecarPresence, sidecar_alive};
use std::path::Path;

/// How long the lease must still be valid for a request to be carried out, in milliseconds.
const SPARE_MS: u64 = 5_000;

impl Bridge {
    /// Whether the server's clock is known.
    pub(super) fn knows_time(&self) -> bool {
        self.server_time.server_ms(self.now.boot_ms).is_some()
    }

    /// How old a request is, in milliseconds: its age at the sender, plus the time since then by the server's clock.
    /// None while the server's clock is not known.
    pub(super) fn age_ms(&self, header: &Header, stored_ms: i64) -> Option<u64> {
        let since = on_its_way_since(header, stored_ms);
        Some(header.age_ms.saturating_add(self.server_time.in_stream_ms(since, self.now.boot_ms)?))
    }

    pub(super) fn judge(
        &self,
        header: &Header,
        from: &Member,
        (request, parts, rid): (&[u8], &[LetterPart], &RequestId),
        age_ms: u64,
        known: &KnownRequest,
    ) -> Judged {
        // A request that is too long for the spool is not even parsed: it counts as a request without a kind.
        let readable = Some(request).filter(|request| request.len() as u64 <= MAX_INPUT_BYTES);
        let asked: serde_json::Value =
            readable.and_then(|request| serde_json::from_slice(request).ok()).unwrap_or_default();
        let sidecar_answers = || matches!(sidecar_alive(self.home.root(), &self.now), SidecarPresence::Alive { .. });
        let kind = asked["kind"].as_str();
        let is_own_kind = [Some(VIEW), Some(personas::KIND)].contains(&kind);
        let has_room = || self.kept.has_room(&from.name, bytes_of(request, parts));
        let known = LetterContext {
            accepts: &self.settings.accept,
            kind,
            host_field: asked["host"].as_str(),
            leads_outside: leads_outside(&asked, &self.folder.path("in", rid.as_str())),
            is_answered: known.given.is_some(),
            was_dropped: known.dropped.is_some(),
            was_another: known.is_another(request),
            sent_wall_ms: millis(&header.sent_at),
            now_wall_ms: self.now.wall_ms,
            in_stream_ms: age_ms.saturating_sub(header.age_ms),
            has_room: kind == Some(VIEW) || known.dropped.is_some() || has_room(),
            can_serve: self.has_lease(SPARE_MS) && (is_own_kind || sidecar_answers()),
        };
        judge(header, from, &self.here, &known)
    }
}

/// How many bytes a request has, with the files that came with it.
pub(super) fn bytes_of(request: &[u8], parts: &[LetterPart]) -> u64 {
    parts.iter().map(|part| part.bytes.len() as u64).sum::<u64>().saturating_add(request.len() as u64)
}

/// Whether a path in the request leads outside the files that came with it. `own`: the folder of these files.
fn leads_outside(asked: &serde_json::Value, own: &Path) -> bool {
    let document = &asked["document"];
    let paths = [document, &document["path"]].into_iter().filter_map(serde_json::Value::as_str).map(Path::new);
    let is_inside = |path: &Path| path.parent() == Some(own) && path.file_name().is_some();
    paths.into_iter().any(|path| !is_inside(path))
}

/// The right that allows this kind and the fewest others.
fn right_for(kind: &str) -> &'static str {
    let allowing = RIGHTS.into_iter().filter(|right| right.kinds().contains(&kind));
    allowing.min_by_key(|right| right.kinds().len()).map_or("RIGHT", Right::as_str)
}

/// Whether the bridge gives the answer itself and keeps it in `told/` before it is sent.
pub(super) fn is_answer_kept(judged: Judged, kind: &str) -> bool {
    match judged {
        Judged::Refuse(_) => true,
        Judged::CarryOut => kind == personas::KIND,
        Judged::NotAuthentic(_) | Judged::AnswerAgain | Judged::IdReused | Judged::TakeBack | Judged::Later => false,
    }
}

/// A refusal with a message and a hint.
pub(super) fn in_words(refusal: FleetRefusal, kind: &str, from: &HostName) -> FleetRefused {
    let (status, code) = refusal.answer();
    let (message, hint) = match refusal {
        FleetRefusal::HostReborn => (
            "The request was meant for a home that this host has replaced.".to_owned(),
            "Nothing was carried out. Ask again: the request then goes to the new home.".to_owned(),
        ),
        FleetRefusal::TooOld => (
            "The request was made more than 8 days ago, or the clocks of both hosts differ by more than that."
                .to_owned(),
            "Nothing was carried out. Compare the clocks: tasuki doctor".to_owned(),
        ),
        FleetRefusal::Expired => (
            "The request came after its time was over.".to_owned(),
            "Nothing was carried out. Ask again, with more time if the host is often away.".to_owned(),
        ),
        FleetRefusal::NotAccepted => (
            format!("This host accepts no {kind} from {from}."),
            format!("To allow it, run there: tasuki fleet accept {from} {}", right_for(kind)),
        ),
        FleetRefusal::NotFromElsewhere => (
            format!("A request such as this one ({kind}) is never taken from another host."),
            "Run the command on that host itself.".to_owned(),
        ),
        FleetRefusal::TooMany => (
            format!("This host keeps 10,000 requests of {from}, or 256 MiB of them, and takes no more."),
            "Nothing was carried out. It removes each request 7 days after its answer: ask again later, and less often."
                .to_owned(),
        ),
    };
    FleetRefused::new(status, code, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_must_lead_to_a_file_that_came_with_the_letter() {
        let own = Path::new("/h/fleet/in/fleet.a.x");
        for (asked, leads) in [
            (json!({"kind": "agent_send"}), false),
            (json!({"document": {"path": "/h/fleet/in/fleet.a.x/handoff.md"}}), false),
            (json!({"document": {"path": "/h/fleet/in/fleet.a.y/handoff.md"}}), true),
            (json!({"document": {"path": "/h/fleet/in/fleet.a.x/../../key"}}), true),
            (json!({"document": "/etc/passwd"}), true),
            (json!({"document": {"path": "relative.md"}}), true),
            (json!({"document": {"text": "/etc"}}), false),
        ] {
            assert_eq!(leads_outside(&asked, own), leads, "{asked}");
        }
    }
}
