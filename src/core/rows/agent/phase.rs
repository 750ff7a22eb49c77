//! How far a text that tasuki types to an agent has come.

use crate::core::effect::EffectKey;
use serde::{Deserialize, Serialize};

/// How far a text has come on its way to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub enum Phase {
    /// This effect types it.
    InFlight(EffectKey),
    /// It was seen in the composer and Enter was pressed. tasuki waits for its receipt.
    Submitted,
    /// It is not known whether it arrived, for this reason. Its receipt may still come.
    Doubt(String),
    /// The CLI has reported it, and this effect looks in the transcript whether the CLI took it. The verdict will have
    /// this remark.
    Reported { effect: EffectKey, remark: Option<String> },
    /// The CLI has reported it with somebody's keys, and no transcript shows whether the CLI took it. The verdict will
    /// have this remark.
    Merged { remark: String },
}

impl Phase {
    /// The effect that runs for it.
    #[must_use]
    pub fn effect(&self) -> Option<EffectKey> {
        match self {
            Phase::InFlight(effect) | Phase::Reported { effect, .. } => Some(*effect),
            Phase::Submitted | Phase::Doubt(_) | Phase::Merged { .. } => None,
        }
    }

    /// The CLI has reported the text.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        matches!(self, Phase::Reported { .. } | Phase::Merged { .. })
    }
}

/// The stored form of [`Phase`], in which each part is a field of the text's row.
#[derive(Default, Serialize, Deserialize)]
struct Stored {
    effect: Option<EffectKey>,
    submitted: bool,
    #[serde(default)]
    reported: Option<Report>,
    doubt: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Report {
    remark: Option<String>,
}

impl From<Stored> for Phase {
    /// If there is a report, the other fields do not count, except the effect: older versions left in them what they
    /// knew before the report.
    fn from(row: Stored) -> Self {
        match row {
            Stored { reported: Some(Report { remark }), effect: Some(effect), .. } => {
                Phase::Reported { effect, remark }
            }
            Stored { reported: Some(Report { remark }), .. } => Phase::Merged { remark: remark.unwrap_or_default() },
            Stored { effect: Some(effect), .. } => Phase::InFlight(effect),
            Stored { doubt: Some(reason), .. } => Phase::Doubt(reason),
            Stored { submitted: true, .. } => Phase::Submitted,
            // No version has written this.
            Stored { .. } => Phase::Doubt("deadline".to_owned()),
        }
    }
}

impl From<Phase> for Stored {
    fn from(phase: Phase) -> Self {
        let effect = phase.effect();
        match phase {
            Phase::InFlight(_) => Stored { effect, ..Stored::default() },
            Phase::Submitted => Stored { submitted: true, ..Stored::default() },
            Phase::Doubt(reason) => Stored { doubt: Some(reason), ..Stored::default() },
            Phase::Reported { remark, .. } => Stored { effect, reported: Some(Report { remark }), ..Stored::default() },
            Phase::Merged { remark } => Stored { reported: Some(Report { remark: Some(remark) }), ..Stored::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(row: &Value) -> Phase {
        serde_json::from_value(row.clone()).expect("a row of an older version")
    }

    #[test]
    fn phases_are_stored_as_they_always_were() {
        let effect = EffectKey(7);
        let merged = "merged_draft".to_owned();
        let rows = [
            (json!({ "effect": 7, "submitted": false, "reported": null, "doubt": null }), Phase::InFlight(effect)),
            (json!({ "effect": null, "submitted": true, "reported": null, "doubt": null }), Phase::Submitted),
            (
                json!({ "effect": null, "submitted": false, "reported": null, "doubt": "no_answer" }),
                Phase::Doubt("no_answer".to_owned()),
            ),
            (
                json!({ "effect": 7, "submitted": false, "reported": { "remark": null }, "doubt": null }),
                Phase::Reported { effect, remark: None },
            ),
            (
                json!({ "effect": 7, "submitted": false, "reported": { "remark": "merged_draft" }, "doubt": null }),
                Phase::Reported { effect, remark: Some(merged.clone()) },
            ),
            (
                json!({ "effect": null, "submitted": false, "reported": { "remark": "merged_draft" }, "doubt": null }),
                Phase::Merged { remark: merged },
            ),
        ];
        for (row, phase) in rows {
            assert_eq!(read(&row), phase);
            assert_eq!(json!(phase), row);
        }
    }

    #[test]
    fn rows_of_older_versions_are_read() {
        assert_eq!(read(&json!({ "effect": 7, "submitted": false, "doubt": null })), Phase::InFlight(EffectKey(7)));
        assert_eq!(read(&json!({ "effect": null, "submitted": true, "doubt": null })), Phase::Submitted);
        // What was known before the report stayed there.
        let reported = json!({ "effect": 7, "submitted": true, "reported": { "remark": null }, "doubt": "no_answer" });
        assert_eq!(read(&reported), Phase::Reported { effect: EffectKey(7), remark: None });
    }
}
