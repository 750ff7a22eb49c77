//! The files that tasuki writes for others. Each type is described once: the core fills these types, the sidecar writes
//! them, commands, `top` and `serve` read them, and `tasuki schema` is made from them. Requests, which others write,
//! are in [`crate::core::request`] with their checks. A type may get more fields; none is removed within `v` 1. A field
//! that can be null is always present unless it says otherwise.
//!
//! Reading is more tolerant than the schema, because another version may have written the file: unknown fields are
//! ignored, a missing field or a value of another type counts as absent, and an unknown word is kept as it is.

pub mod ack;
pub mod agent;
pub mod answer;
pub mod bridge;
pub mod document;
pub mod error;
pub mod facts;
pub mod fleet;
pub mod handoff;
pub mod journal;
pub mod needs;
pub mod notice;
pub mod publishing;
pub mod reply;
pub mod sidecar;
mod words;
pub mod work;

pub use ack::AckView;
pub use agent::{AgentState, AgentView, ContextView, Hooks, LimitKind, LimitedView};
pub use answer::{Fault, ResultFile, WhyFile};
pub use bridge::BridgeView;
pub use document::DocumentFault;
pub use error::ErrorFile;
pub use facts::Facts;
pub use fleet::{FleetRequestFile, FleetResultFile, HostHandoff, HostState, HostView};
pub use handoff::{DeliveryView, HandoffView, Step, StepError, StepView, Verdict};
pub use journal::{JournalLine, LineType};
pub use needs::{NeedKind, NeedView};
pub use notice::{NoticeCode, NoticeRecord};
pub use publishing::{PublishState, PublishView};
pub use sidecar::{Health, ServerView, SidecarView, Watch};
pub use words::{MaybeNull, Word, Words, known, maybe};
pub use work::{WorkBrief, WorkView};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::{Path, Segment};

/// The most values of the wrong type that are left out of one file. A file with more of them is not understood.
const MOST_ODD: usize = 100;

/// A file's text, with its fields in alphabetical order, whatever their order in the type.
#[must_use]
pub fn text(written: &impl Serialize) -> String {
    json!(written).to_string()
}

/// Parses a file; `None` if it is JSON but not an object.
///
/// # Errors
/// When it is not JSON.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<Option<T>> {
    // serde would also read a list as a struct, with the fields in their order.
    let is_object = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    match serde_json::from_slice(text) {
        Ok(said) if is_object => Ok(Some(said)),
        _ => Ok(understood(serde_json::from_slice(text)?)),
    }
}

/// Parses an object and leaves out the values that have the wrong type.
#[must_use]
pub fn understood<T: DeserializeOwned>(mut object: Value) -> Option<T> {
    if !object.is_object() {
        return None;
    }
    for _ in 0..MOST_ODD {
        match serde_path_to_error::deserialize(&object) {
            Ok(said) => return Some(said),
            Err(error) if leave_out(&mut object, error.path()) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Removes the value at a path, and returns whether there was one.
fn leave_out(object: &mut Value, path: &Path) -> bool {
    let is_place = |segment: &&Segment| matches!(segment, Segment::Map { .. } | Segment::Seq { .. });
    let mut places = path.iter().take_while(is_place).peekable();
    let mut within = object;
    while let Some(place) = places.next() {
        let is_last = places.peek().is_none();
        let inner = match (place, within) {
            (Segment::Map { key }, Value::Object(fields)) if is_last => return fields.remove(key).is_some(),
            (Segment::Seq { index }, Value::Array(items)) if is_last => {
                let is_there = *index < items.len();
                is_there.then(|| items.remove(*index));
                return is_there;
            }
            (Segment::Map { key }, Value::Object(fields)) => fields.get_mut(key),
            (Segment::Seq { index }, Value::Array(items)) => items.get_mut(*index),
            _ => None,
        };
        let Some(inner) = inner else { return false };
        within = inner;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(json: &Value) -> AgentView {
        read(json.to_string().as_bytes()).expect("JSON").expect("an object")
    }

    #[test]
    fn a_missing_odd_or_unknown_field_hides_no_other_field() {
        let seen = agent(&json!({
            "v": 2, "agent_id": "a", "profile": 7, "persona_slug": ["kai"], "state": "dreaming", "pid": -1, "pane": "%3",
            "hooks": null, "context": {"used": 5, "window": "large", "more": 1}, "mood": {"of": "a later version"},
        }));
        assert_eq!((seen.v, seen.agent_id.as_str(), seen.pane.as_deref()), (2, "a", Some("%3")));
        assert_eq!((seen.profile.as_str(), seen.persona_slug, seen.pid), ("", None, None));
        assert_eq!((&seen.state, seen.state.as_str()), (&Word::Other("dreaming".to_owned()), "dreaming"));
        assert_eq!((seen.hooks.as_str(), seen.ended_at), ("", None));
        let context = seen.context.expect("what is left of it");
        assert_eq!((context.used, context.window), (5, None));
        assert!(seen.primed, "a version that did not say so typed only into agents that were");
    }

    #[test]
    fn a_sidecar_s_view_stays_as_it_is() {
        let view = SidecarView {
            v: 1,
            pid: 7,
            version: "0.1.0".to_owned(),
            started_at: "2026-11-23T08:00:00.000Z".to_owned(),
            heartbeat: "2026-11-23T08:00:05.000Z".to_owned(),
            taken_at: Some(None),
            tmux: Some(ServerView { pid: 8, start_time: 1_790_000_000, socket: Some("/tmp/tmux-0/work".to_owned()) }),
            state: Health::Degraded.into(),
            problem: Some("no room".to_owned()),
            watch: Watch::Poll.into(),
            journal_seq: 9,
        };
        let written = concat!(
            r#"{"heartbeat":"2026-11-23T08:00:05.000Z","journal_seq":9,"pid":7,"problem":"no room","#,
            r#""started_at":"2026-11-23T08:00:00.000Z","state":"degraded","taken_at":null,"#,
            r#""tmux":{"pid":8,"socket":"/tmp/tmux-0/work","start_time":1790000000},"v":1,"version":"0.1.0","watch":"poll"}"#,
        );
        assert_eq!(text(&view), written);
        assert_eq!(read(written.as_bytes()).expect("JSON"), Some(view));
        let fresh = SidecarView {
            taken_at: Some(Some("2026".to_owned())),
            watch: Watch::Armed.into(),
            ..SidecarView::default()
        };
        assert!(text(&fresh).contains(r#""taken_at":"2026""#) && text(&fresh).contains(r#""watch":"armed""#));
    }

    #[test]
    fn a_view_distinguishes_requests_never_taken_from_a_time_not_known() {
        let taken_at = |text: &str| read::<SidecarView>(text.as_bytes()).expect("JSON").expect("an object").taken_at;
        assert_eq!(taken_at(r#"{"taken_at":"2026"}"#), Some(Some("2026".to_owned())));
        assert_eq!((taken_at(r#"{"taken_at":null}"#), taken_at("{}")), (Some(None), None));
    }

    #[test]
    fn a_file_without_an_object_reads_as_nothing_and_one_without_json_is_an_error() {
        for nothing in ["[]", "null", "7", "\"a\"", "[1, \"a\", \"b\"]"] {
            assert_eq!(read::<AgentView>(nothing.as_bytes()).expect("JSON"), None, "{nothing}");
        }
        for torn in ["", "{", "{\"agent_id\":\"a\"", "{\"agent_id\":\"a\"} x"] {
            assert!(read::<AgentView>(torn.as_bytes()).is_err(), "{torn}");
        }
    }

    #[test]
    fn the_last_of_two_fields_with_the_same_name_counts() {
        let seen: AgentView = read(br#"{"agent_id":"a","agent_id":"b"}"#).expect("JSON").expect("an object");
        assert_eq!(seen.agent_id, "b");
    }
}
