//! Which views of history stay, however old they are: those that a person may need for a command that a message names.

use crate::core::state::State;
use crate::store::{Error, NamedInErrors, Store};

/// The agents and handoffs of history whose views stay. An error's hint may name a command that needs the view. The
/// other handoffs are those that must be retried or abandoned before something else can happen: a living agent can't be
/// handed off, because the handoff has recorded its document or because its predecessor's document has not reached it,
/// or the handoff holds a work item.
///
/// # Errors
/// The store can't be read.
pub(super) fn kept_views(state: &State, store: &Store) -> Result<NamedInErrors, Error> {
    let mut kept = store.what_errors_name()?;
    kept.handoffs.extend(state.agents.values().flat_map(|agent| [agent.recorded_in, agent.unbriefed_in]).flatten());
    kept.handoffs.extend(state.items.values().filter_map(|item| item.held_by));
    let unbriefed = state.agents.values().filter(|agent| agent.chain.generation == 0);
    for id in unbriefed.filter_map(|agent| agent.previous_agent_id) {
        let in_history = || store.past_agent(&id).ok().flatten()?.recorded_in;
        // A damaged row names nothing.
        kept.handoffs.extend(state.agents.get(&id).map_or_else(in_history, |agent| agent.recorded_in));
    }
    Ok(kept)
}
