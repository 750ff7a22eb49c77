//! Helpers for a handoff's row: finds it, starts and cancels the step's effect, adds warnings.

use crate::core::effect::Effect;
use crate::core::id::HandoffId;
use crate::core::reply::Refused;
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::rows::outbox::Waiter;
use crate::core::tx::Tx;

/// Finds the handoff that a request names.
pub(crate) fn find<'t>(tx: &'t Tx<'_>, text: &str) -> Result<&'t Handoff, Refused> {
    let found = text.parse::<HandoffId>().ok().and_then(|id| tx.handoff(&id));
    found.ok_or_else(|| Refused::new(404, "no_handoff", "Handoff not found"))
}

/// The 409 answer for a handoff that has ended, which says how it ended.
pub(crate) fn already_ended_refusal(handoff: &Handoff) -> Refused {
    let end = handoff.step.as_str();
    let code = handoff.error.as_ref().filter(|_| handoff.step == Step::Failed);
    let code = code.map(|error| format!(" ({} in {})", error.code, error.step.as_str())).unwrap_or_default();
    Refused::new(409, "already_ended", format!("The handoff has ended: {end}{code}")).hint("nothing was changed")
}

/// Adds an effect, and notes that the present step waits for its outcome. Does not cancel an earlier effect of the
/// step.
pub(crate) fn run(tx: &mut Tx<'_>, id: HandoffId, effect: Effect) {
    let key = tx.effect(Waiter::Step(id), effect);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.stay.effect = Some(key);
    }
}

/// Cancels the effect that the present step waits for, if there is one.
pub(crate) fn stop(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(key) = tx.handoff_mut(&id).and_then(|handoff| handoff.stay.effect.take()) {
        tx.drop_effect(key);
    }
}

/// Adds a warning to the handoff's view, once. A warning does not stop the handoff.
pub(crate) fn warn(tx: &mut Tx<'_>, id: HandoffId, warning: &str) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    if !handoff.warnings.iter().any(|known| known == warning) {
        handoff.warnings.push(warning.to_owned());
    }
}
