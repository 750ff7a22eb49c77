//! A model of `gh` and of the server behind it: whatever is sent may be stored without an answer, and a look may fail.

use super::disk::Disk;
use super::rng::Rng;
use super::runner::Run;
use super::world::World;
use serde_json::{Value, json};
use tasuki::core::effect::{CopyPlan, Outcome, Posted, PublishFault, PublishPlan, SecretFound};
use tasuki::core::id::HandoffId;
use tasuki::core::request::PublishAs;

impl World {
    /// The operator wants it published now, and may say what became of it.
    pub(crate) fn publish_now(&mut self, id: HandoffId) -> Value {
        let mut request = json!({ "v": 1, "kind": "publish", "handoff_id": id });
        match self.rng.below(6) {
            0 => request["assume"] = json!("published"),
            1 => {
                self.unpublished.insert(id);
                request["assume"] = json!("not_published");
            }
            2 => request["as"] = json!("redacted"),
            3 => request["to"] = json!({ "gist": true }),
            4 => request["to"] = json!({ "issue": "o/r#43", "fallback": "gist" }),
            _ => request["as"] = json!("as_is"),
        }
        request
    }
}

impl Disk {
    /// Whether a handoff is published, or has a record that can be.
    pub(crate) fn publishes(&self, id: HandoffId) -> bool {
        self.handoffs()
            .any(|handoff| handoff.handoff_id == id && (handoff.publish.is_some() || handoff.record.is_some()))
    }
}

/// Keeps the copy.
pub(crate) fn keep_copy(plan: &CopyPlan, rng: &mut Rng, faults_on: bool) -> Outcome {
    if faults_on && rng.chance(5) {
        return Outcome::Failed { why: "no space left".to_owned() };
    }
    // Some documents hold a credential, and then nothing is copied until the operator says how.
    if plan.publish_as.is_none() && plan.sha256.ends_with(['0', '7']) {
        let secret = SecretFound { kind: "github-pat".to_owned(), line: 3, last: "wxyz".to_owned(), start: 0, end: 4 };
        return Outcome::SecretsFound(vec![secret]);
    }
    let redacted_sha256 = (plan.publish_as == Some(PublishAs::Redacted)).then(|| plan.sha256.clone());
    Outcome::Copied { file_name: format!("{}.md", plan.stem), redacted_sha256 }
}

/// Looks where it must, then posts: the order of the real one.
pub(crate) fn publish(
    run: &mut Run,
    plan: &PublishPlan,
    disk: &mut Disk,
    rng: &mut Rng,
    faults_on: bool,
) -> Option<Outcome> {
    let key = (plan.handoff_id, plan.number, plan.target.way().as_str());
    let before = plan.may_be_in_flight || run.resumed || !plan.post;
    if run.phase == 0 {
        run.phase = 1;
        if run.resumed || plan.look_first || !plan.post {
            if faults_on && rng.chance(30) {
                if !plan.insist {
                    return Some(failed("gh_offline", before, rng.chance(80)));
                }
            } else if disk.uploads.contains_key(&key) {
                return Some(Outcome::Posted(Posted::Done { url: Some("https://x/".to_owned()), is_public: false }));
            } else if !plan.post {
                return Some(Outcome::Posted(Posted::NotThere));
            }
        }
        return None;
    }
    if run.phase == 1 {
        run.phase = 2;
        match rng.below(if faults_on { 10 } else { 1 }) {
            0..5 => *disk.uploads.entry(key).or_default() += 1,
            5 => return Some(failed("gh_server", true, true)),
            6 => {
                *disk.uploads.entry(key).or_default() += 1;
                return Some(failed("gh_timeout", true, true));
            }
            7 => return Some(failed("gh_auth", false, false)),
            8 => {
                let fault = PublishFault { code: "gh_too_large".to_owned(), refused: true, ..PublishFault::default() };
                return Some(Outcome::Posted(Posted::Failed(fault)));
            }
            _ => {
                *disk.uploads.entry(key).or_default() += u32::from(rng.chance(50));
                disk.uploads.retain(|_, count| *count > 0);
                return Some(failed("gh_failed", true, false));
            }
        }
        return None;
    }
    Some(Outcome::Posted(Posted::Done { url: Some("https://x/".to_owned()), is_public: false }))
}

fn failed(code: &str, maybe_stored: bool, is_retryable: bool) -> Outcome {
    let fault =
        PublishFault { code: code.to_owned(), message: String::new(), maybe_stored, is_retryable, refused: false };
    Outcome::Posted(Posted::Failed(fault))
}
