//! Handles the facts that the state machines of agents have queued. Most go to the handoff or the work item that they
//! concern.

use super::agent::{alerts, cli_limits, context_usage, exit, priming};
use super::fact::{DeliveryResult, Fact};
use super::handoff::{ack, dialogs, driver, trigger};
use super::id::AgentId;
use super::rows::agent::Purpose;
use super::tx::Tx;
use super::work::{notices, transfer};

/// The most facts that may follow from one another. The chain always ends far below this, because each fact ends
/// something that was begun before; more facts are a bug.
const MOST: usize = 100_000;

/// Handles all queued facts, and the facts that are queued while it does so.
pub(crate) fn facts(tx: &mut Tx<'_>) {
    for _ in 0..MOST {
        let Some(fact) = tx.next_fact() else { return };
        follow(tx, &fact);
    }
    panic!("facts follow from each other without an end");
}

fn follow(tx: &mut Tx<'_>, fact: &Fact) {
    match fact {
        Fact::Verdict { agent_id, purpose: Purpose::Message(id, number), result, .. } => {
            ack::messages::verdict(tx, *id, *number, agent_id, result);
        }
        Fact::Verdict { agent_id, purpose: Purpose::Work(item), verdict, result } => {
            notices::verdict(tx, agent_id, *item, verdict, result);
        }
        Fact::OurTurnEnded { agent_id, purpose: Purpose::Work(item), event } => {
            notices::turn_over(tx, agent_id, *item, event.as_deref());
        }
        Fact::Verdict { agent_id, purpose: Purpose::Priming(None), result, .. } => {
            priming::verdict_outside_handoff(tx, agent_id, result);
        }
        Fact::Verdict { agent_id, purpose: Purpose::Exit(None), result, .. } => {
            exit::exit_command_verdict(tx, agent_id, result)
        }
        Fact::Verdict { agent_id, purpose: Purpose::Resume, result: DeliveryResult::Unconfirmed(why), .. } => {
            cli_limits::not_resumed(tx, agent_id, &format!("it is not known whether the text arrived ({why})"));
        }
        Fact::Verdict { agent_id, purpose: Purpose::Resume, result: DeliveryResult::Refused(reason), .. } => {
            cli_limits::not_resumed(tx, agent_id, &reason.told("nothing was typed"));
        }
        Fact::Verdict { purpose, .. } | Fact::OurTurnEnded { purpose, .. } => {
            if let Some(id) = purpose.handoff() {
                driver::learned(tx, id, fact);
            }
        }
        Fact::NewSessionAsked { handoff_id }
        | Fact::Primed { handoff_id, .. }
        | Fact::SuccessorReady { handoff_id }
        | Fact::SuccessorFailed { handoff_id, .. } => driver::learned(tx, *handoff_id, fact),
        Fact::NotTyped { handoff_id, number, why } => ack::messages::not_typed(tx, *handoff_id, *number, why),
        Fact::AnyTurnEnded { agent_id } => dialogs::successor_turn_ended(tx, agent_id),
        Fact::Blocked { agent_id, message } => blocked(tx, agent_id, message.as_deref()),
        Fact::DialogClosed { agent_id } => dialogs::successor_dialog_closed(tx, agent_id),
        Fact::SessionReplaced { agent_id, .. } => to_its_handoff(tx, agent_id, fact),
        Fact::ContextFull { agent_id, percent, facts } => {
            match trigger::begin_automatic(tx, agent_id, context_usage::REASON, facts) {
                Ok(handoff_id) => context_usage::auto_handoff_begun(tx, agent_id, *percent, handoff_id),
                Err(refused) => context_usage::defer_and_tell(tx, agent_id, *percent, &refused.message),
            }
        }
        Fact::UsedUp { agent_id, choice, facts } => {
            match trigger::begin_after_limit(tx, agent_id, cli_limits::REASON, choice, facts) {
                Ok(handoff_id) => cli_limits::handoff_begun(tx, agent_id, choice, handoff_id),
                Err(refused) => cli_limits::handoff_refused(tx, agent_id, &refused.message),
            }
        }
        Fact::Ended { agent_id } => {
            transfer::agent_ended(tx, agent_id);
            dialogs::successor_turn_ended(tx, agent_id);
            to_its_handoff(tx, agent_id, fact);
        }
    }
}

/// Passes a fact to the agent's handoff, unless the handoff has released the agent meanwhile.
fn to_its_handoff(tx: &mut Tx<'_>, agent_id: &AgentId, fact: &Fact) {
    if let Some(id) = tx.agent(agent_id).and_then(|agent| agent.handoff_id) {
        driver::learned(tx, id, fact);
    }
}

fn blocked(tx: &mut Tx<'_>, agent_id: &AgentId, message: Option<&str>) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let handoff = agent.handoff_id.and_then(|id| tx.handoff(&id)).cloned();
    // Nobody hears of the dialog of a handoff that is gone.
    match (handoff, agent.answering.filter(|id| tx.handoff(id).is_some())) {
        (_, Some(id)) => dialogs::successor_blocked(tx, id, agent_id, message),
        (Some(handoff), None) => dialogs::blocked(tx, &handoff, agent_id, message),
        (None, None) => return alerts::dialog_opened(tx, agent_id, message),
    }
    alerts::dialog_told(tx, agent_id, message);
}
