//! The two watches of an agent's screen that find the end of a turn when no event reports it.

use crate::core::effect::EffectKey;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// The state of one of the watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchState {
    #[default]
    Off,
    /// It begins at this time.
    Due(Deadline),
    /// This effect watches.
    Running(EffectKey),
}

impl WatchState {
    fn of(effect: Option<EffectKey>, due: Option<Deadline>) -> WatchState {
        effect.map(WatchState::Running).or(due.map(WatchState::Due)).unwrap_or_default()
    }

    fn parts(self) -> (Option<EffectKey>, Option<Deadline>) {
        match self {
            WatchState::Off => (None, None),
            WatchState::Due(due) => (None, Some(due)),
            WatchState::Running(key) => (Some(key), None),
        }
    }
}

/// The two watches of an agent's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct IdleWatch {
    /// Runs while something waits for the end of a turn. If it has not seen the end, it begins again after a pause.
    pub turn: WatchState,
    /// A brief watch, which begins if the agent has sent no event for long although it is in a turn, or some time after
    /// a dialog was found closed.
    pub silence: WatchState,
}

impl IdleWatch {
    /// Whether one of them is this effect.
    #[must_use]
    pub fn runs(&self, key: EffectKey) -> bool {
        [self.turn, self.silence].contains(&WatchState::Running(key))
    }
}

/// The stored form of [`IdleWatch`], in which each part is a field of the agent's row.
#[derive(Serialize, Deserialize)]
struct Stored {
    probe: Option<EffectKey>,
    look_again: Option<Deadline>,
    #[serde(rename = "unheard")]
    silence_deadline: Option<Deadline>,
    #[serde(rename = "glance")]
    single_probe: Option<EffectKey>,
}

impl From<Stored> for IdleWatch {
    fn from(row: Stored) -> Self {
        IdleWatch {
            turn: WatchState::of(row.probe, row.look_again),
            silence: WatchState::of(row.single_probe, row.silence_deadline),
        }
    }
}

impl From<IdleWatch> for Stored {
    fn from(watch: IdleWatch) -> Self {
        let ((probe, look_again), (single_probe, silence_deadline)) = (watch.turn.parts(), watch.silence.parts());
        Stored { probe, look_again, silence_deadline, single_probe }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Now;
    use serde_json::json;

    #[test]
    fn watch_states_are_stored_as_before() {
        let due = Deadline::after(&Now { wall_ms: 0, boot: 1, boot_ms: 0 }, 5);
        let rows = [
            (json!({ "probe": null }), IdleWatch::default()),
            (json!({ "probe": 7 }), IdleWatch { turn: WatchState::Running(EffectKey(7)), ..IdleWatch::default() }),
            (
                json!({ "probe": null, "look_again": due, "unheard": due, "glance": null }),
                IdleWatch { turn: WatchState::Due(due), silence: WatchState::Due(due) },
            ),
            (
                json!({ "probe": 7, "look_again": null, "unheard": null, "glance": 8 }),
                IdleWatch { turn: WatchState::Running(EffectKey(7)), silence: WatchState::Running(EffectKey(8)) },
            ),
        ];
        for (row, watch) in rows {
            assert_eq!(serde_json::from_value::<IdleWatch>(row.clone()).expect("a row of an older version"), watch);
            let stored = json!(watch);
            assert!(row.as_object().expect("an object").iter().all(|(name, value)| stored[name] == *value), "{stored}");
            assert_eq!(stored.as_object().expect("an object").len(), 4, "{stored}");
        }
    }
}
