//! Upgrades a store of an older schema. Schema 2 added the packs of the history, schema 3 work items, schema 4 the
//! waiter in each row of the outbox, and schema 5 the table of ids that have capital letters.

use super::case_twins;
use super::tables::{self, AGENTS, HANDOFFS, LEDGER, LEDGER_CASES, META, OUTBOX, SCHEMA, json};
use crate::core::effect::{Effect, EffectKey};
use crate::core::rows::agent::{Agent, Primed};
use crate::core::rows::handoff::Handoff;
use crate::core::rows::lookup::PaneLookup;
use crate::core::rows::outbox::{Pending, Waiter};
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Up to schema 3: panes that were being looked up, by their effect.
const PANE_LOOKUPS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("meetings");

/// Upgrades from any older schema in one transaction.
pub(super) fn upgrade(write: &WriteTransaction) -> Result<(), redb::Error> {
    tables::open_all(write)?;
    case_twins::note_all(&write.open_table(LEDGER)?, &mut write.open_table(LEDGER_CASES)?)?;
    let former = Former {
        agents: rows(write, AGENTS)?.into_values().collect(),
        handoffs: rows(write, HANDOFFS)?.into_values().collect(),
        lookups: rows(write, PANE_LOOKUPS)?,
    };
    let effects: BTreeMap<u64, Effect> = rows(write, OUTBOX)?;
    let mut outbox = write.open_table(OUTBOX)?;
    for (key, effect) in effects {
        let waiter = former.waiter(EffectKey(key), &effect);
        outbox.insert(key, json(&Pending { waiter, effect }).as_slice())?;
    }
    drop(outbox);
    write.delete_table(PANE_LOOKUPS)?;
    write.open_table(META)?.insert("schema", SCHEMA)?;
    Ok(())
}

/// The rows of a table that can be parsed as `T`. An outbox of schema 4 has no rows that can be parsed as an
/// [`Effect`]: each has its waiter already, and stays as it is. When the working set is loaded, a damaged row is
/// reported with its table.
fn rows<K, T>(
    write: &WriteTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
) -> Result<BTreeMap<K, T>, redb::Error>
where
    K: redb::Key + 'static + for<'a> redb::Value<SelfType<'a> = K> + Copy + Ord,
    T: DeserializeOwned,
{
    let table = write.open_table(table)?;
    let mut rows = BTreeMap::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        if let Ok(row) = serde_json::from_slice(value.value()) {
            rows.insert(key.value(), row);
        }
    }
    Ok(rows)
}

/// Before schema 4, a row of the outbox did not name what waits for its effect. These rows tell it.
struct Former {
    agents: Vec<Agent>,
    handoffs: Vec<Handoff>,
    lookups: BTreeMap<u64, PaneLookup>,
}

impl Former {
    fn waiter(&self, key: EffectKey, effect: &Effect) -> Waiter {
        match effect {
            Effect::Type(plan) => Waiter::Agent(plan.agent_id),
            Effect::Start(plan) => Waiter::Agent(plan.agent_id),
            Effect::AwaitIdle { agent_id, .. }
            | Effect::AwaitReady { agent_id, .. }
            | Effect::AwaitPrompt { agent_id, .. }
            | Effect::ReadContextUsage { agent_id, .. }
            | Effect::ReadLimit { agent_id, .. }
            | Effect::CheckAutoHandoff { agent_id, .. }
            | Effect::KillPane { agent_id, .. } => Waiter::Agent(*agent_id),
            Effect::ReadPersona { .. } => {
                let mut readers = self.agents.iter().filter(|agent| agent.primed == Primed::Reading { effect: key });
                readers.next().map_or(Waiter::Nobody, |agent| Waiter::Agent(agent.agent_id))
            }
            Effect::Identify { .. } => self.lookups.get(&key.0).cloned().map_or(Waiter::Nobody, Waiter::PaneLookup),
            Effect::Notify(plan) => Waiter::Message(plan.handoff_id, plan.number),
            Effect::NotifyOperator(_) | Effect::DropPlaceholder { .. } => Waiter::Nobody,
            Effect::KeepCopy(_) | Effect::Publish(_) => {
                let runs = |of: &&Handoff| of.publish.as_ref().is_some_and(|publish| publish.effect == Some(key));
                self.handoffs.iter().find(runs).map_or(Waiter::Nobody, |of| Waiter::Publishing(of.handoff_id))
            }
            Effect::PrepareFolder { .. }
            | Effect::ReadDocument { .. }
            | Effect::ComposeDocument { .. }
            | Effect::Examine(_)
            | Effect::AwaitRead { .. }
            | Effect::LookAtTurn { .. }
            | Effect::CompareDocument { .. }
            | Effect::AwaitDeath { .. }
            | Effect::HoldPlaceholder { .. } => {
                let mut waiting = self.handoffs.iter().filter(|handoff| handoff.stay.effect == Some(key));
                waiting.next().map_or(Waiter::Nobody, |handoff| Waiter::Step(handoff.handoff_id))
            }
        }
    }
}
