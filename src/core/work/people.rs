//! Notifies the operator: of ready items that a person may process and no living agent can, of completions if the rule
//! says so, and of escalations. A person may process an item if its rule names `human`, or if it was escalated before.
//! Takes new rules and roles, because they change who can process an item.

use super::items::line;
use super::judge::Judge;
use crate::contract::NoticeCode;
use crate::core::id::{AgentId, ItemId, Slug};
use crate::core::notice::OperatorNotice;
use crate::core::rows::agent::Agent;
use crate::core::rows::item::{Item, Status, Who};
use crate::core::rules::{Rule, Rules};
use crate::core::tx::{Failure, Tx};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// How many items one notice names.
const MOST_NAMED: usize = 10;

impl<'t> Judge<'t> {
    /// The living agents that have one of the rule's roles.
    fn workers(&self, tx: &'t Tx<'_>, rule: &Rule) -> Vec<&'t Agent> {
        let living = tx.agent_ids().into_iter().filter_map(|id| tx.agent(&id)).filter(|agent| agent.state.is_live());
        living.filter(|agent| self.plays(agent, rule)).collect()
    }

    /// Those of the items that are ready, that a person may process, and that no living agent can.
    fn only_by_people(&self, tx: &'t Tx<'_>, items: impl Iterator<Item = &'t Item>) -> Vec<ItemId> {
        let mut workers = BTreeMap::new();
        let mut is_left = |item: &&'t Item| {
            let Some(rule) = self.rules.types.get(&item.kind).filter(|_| item.status == Status::Ready) else {
                return false;
            };
            let workers = workers.entry(&item.kind).or_insert_with(|| self.workers(tx, rule));
            (rule.allows_people() || item.escalated_at.is_some()) && !workers.iter().any(|agent| may_get(item, agent))
        };
        items.filter(|item| is_left(item)).map(|item| item.item_id).collect()
    }
}

/// Whether the agent, if it has the role, can still get the item: it has neither escalated it nor given it back.
fn may_get(item: &Item, agent: &Agent) -> bool {
    let id = agent.agent_id;
    !item.escalated_by.contains(&id) && !item.notified.iter().any(|told| told.agent_id == id && told.verdict.is_none())
}

/// Notifies the operator of those of these items that are ready and that only a person can process.
pub(crate) fn to_people(tx: &mut Tx<'_>, ids: &[ItemId]) {
    let mut seen = BTreeSet::new();
    let items = ids.iter().filter(|id| seen.insert(**id)).filter_map(|id| tx.item(id));
    let waiting = Judge::now(tx).only_by_people(tx, items);
    notify(tx, &waiting);
}

fn notify(tx: &mut Tx<'_>, waiting: &[ItemId]) {
    if waiting.is_empty() {
        return;
    }
    let about = |id: &ItemId| tx.item(id).map(|item| format!("{} ({}): {}", id.short(), item.kind, line(&item.title)));
    let mut named: Vec<String> = waiting.iter().take(MOST_NAMED).filter_map(about).collect();
    if waiting.len() > MOST_NAMED {
        named.push(format!("and {} more", waiting.len() - MOST_NAMED));
    }
    let verb = if waiting.len() == 1 { "A work item waits" } else { "Work items wait" };
    let message = format!("{verb} for a person: {}", named.join("; "));
    let shown: Vec<&ItemId> = waiting.iter().take(1_000).collect();
    tx.notify_operator(OperatorNotice::new(NoticeCode::WorkWaiting, message).details(json!({ "item_ids": shown })));
}

/// The rules were read: takes them, and notifies the operator of items that only a person can process by the new rules.
/// If they can't be used, notifies the operator, and the old rules stay in force.
pub(crate) fn rules_read(tx: &mut Tx<'_>, rules: Result<Box<Rules>, String>) {
    match rules {
        Ok(rules) => {
            tx.out.rules = Some(*rules);
            rules_or_roles_changed(tx);
        }
        Err(why) => {
            tx.notify_error(Failure {
                code: "bad_rules".to_owned(),
                message: format!("The rules for work items can't be used: {why}"),
                hint: "the previous rules stay in force; fix the file, then: tasuki rules check".to_owned(),
                handoff_id: None,
                agent_id: None,
                step: None,
            });
        }
    }
}

/// The roles of personas were read: takes them, and notifies the operator of items that only a person can process now.
pub(crate) fn roles_read(tx: &mut Tx<'_>, roles: BTreeMap<Slug, String>) {
    tx.out.roles = Some(roles);
    rules_or_roles_changed(tx);
}

/// Rules or roles have changed: notifies the operator of the items that only a person can process since then.
fn rules_or_roles_changed(tx: &mut Tx<'_>) {
    let left = |judge: Judge<'_>| judge.only_by_people(tx, tx.state.items.values());
    let before: BTreeSet<ItemId> = left(Judge::before(tx)).into_iter().collect();
    let mut waiting = left(Judge::now(tx));
    waiting.retain(|id| !before.contains(id));
    waiting.sort_by_key(|id| tx.item(id).map(|item| item.order));
    notify(tx, &waiting);
}

/// The ready items that this agent, which has ended, could have processed and that only a person can process now.
pub(super) fn left_by(tx: &Tx<'_>, agent_id: &AgentId) -> Vec<ItemId> {
    let Some(agent) = tx.agent(agent_id) else { return Vec::new() };
    let judge = Judge::now(tx);
    let roles = judge.roles_of(agent);
    let waiting = judge
        .rules
        .types_for(&roles)
        .flat_map(|kind| tx.state.items.waiting(kind))
        .filter_map(|item| tx.item(&item.item_id));
    judge.only_by_people(tx, waiting.filter(|item| may_get(item, agent)))
}

/// After a completion: the operator is notified if the rule says so, and of the new items that wait for a person.
pub(crate) fn completed(tx: &mut Tx<'_>, id: ItemId, children: &[ItemId]) {
    let Some(item) = tx.item(&id) else { return };
    let asks = tx.rules().types.get(&item.kind).is_some_and(|rule| rule.ask_human);
    if asks {
        let details = json!({ "item_id": id, "status": item.status.as_str(), "children": children });
        let message = format!("Work item {} ({}) is completed: {}", id.short(), item.kind, line(&item.title));
        tx.notify_operator(OperatorNotice::new(NoticeCode::WorkCompleted, message).details(details));
    }
    to_people(tx, children);
}

pub(crate) fn escalated(tx: &mut Tx<'_>, item: &Item, who: Who, reason: &str) {
    let id = item.item_id;
    let message =
        format!("Work item {} ({}) was escalated: {}: {}", id.short(), item.kind, line(&item.title), line(reason));
    let notice = OperatorNotice::new(NoticeCode::WorkEscalated, message);
    let details = json!({ "item_id": id, "reason": reason });
    tx.notify_operator(OperatorNotice { agent_id: who.agent(), ..notice.details(details) });
}
