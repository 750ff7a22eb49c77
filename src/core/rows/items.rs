//! The items of the working set, with indexes that find the waiting and the claimed items, and those with a time limit,
//! without looking at all of them. The indexes are derived from the rows and change only together with them.

use super::item::{Item, Priority, Status, Who};
use crate::core::id::{AgentId, ItemId};
use crate::core::time::{Deadline, Now};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The position of a ready item among those of its type: by priority, then by age.
type Turn = (Reverse<Priority>, u64, ItemId);

/// Items by id, with indexes of the waiting, the claimed and the offered items and of the running limits.
#[derive(Debug, Clone, Default)]
pub struct Items {
    rows: BTreeMap<ItemId, Item>,
    waiting: BTreeMap<String, BTreeSet<Turn>>,
    claims: BTreeMap<AgentId, BTreeSet<ItemId>>,
    offers: BTreeMap<AgentId, BTreeSet<ItemId>>,
    limits: BTreeMap<ItemId, Deadline>,
    open: usize,
}

fn turn(item: &Item) -> Turn {
    (Reverse(item.priority), item.order, item.item_id)
}

fn take<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}

impl Items {
    /// The item with this id.
    #[must_use]
    pub fn get(&self, id: &ItemId) -> Option<&Item> {
        self.rows.get(id)
    }

    /// Whether the item with this id is loaded.
    #[must_use]
    pub fn contains(&self, id: &ItemId) -> bool {
        self.rows.contains_key(id)
    }

    /// All loaded items.
    pub fn values(&self) -> impl Iterator<Item = &Item> {
        self.rows.values()
    }

    /// How many are ready, claimed or escalated.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Inserts an item, or replaces the one with its id.
    pub fn insert(&mut self, item: Item) {
        self.remove(&item.item_id);
        if item.status == Status::Ready {
            self.waiting.entry(item.kind.clone()).or_default().insert(turn(&item));
        }
        if let Some(Who::Agent(agent)) = item.claimed_by {
            self.claims.entry(agent).or_default().insert(item.item_id);
        }
        if let Some(agent) = item.offered_to {
            self.offers.entry(agent).or_default().insert(item.item_id);
        }
        if let Some(deadline) = item.watch.as_ref().and_then(|watch| watch.deadline) {
            self.limits.insert(item.item_id, deadline);
        }
        self.open += usize::from(item.is_open());
        self.rows.insert(item.item_id, item);
    }

    /// Removes an item and its index entries.
    pub fn remove(&mut self, id: &ItemId) {
        let Some(item) = self.rows.remove(id) else { return };
        if item.status == Status::Ready {
            take(&mut self.waiting, &item.kind, &turn(&item));
        }
        if let Some(Who::Agent(agent)) = item.claimed_by {
            take(&mut self.claims, &agent, id);
        }
        if let Some(agent) = item.offered_to {
            take(&mut self.offers, &agent, id);
        }
        self.limits.remove(id);
        self.open -= usize::from(item.is_open());
    }

    /// The ready items of a type, in the order of [`Turn`].
    pub(crate) fn waiting(&self, kind: &str) -> impl Iterator<Item = &Item> {
        let turns = self.waiting.get(kind).into_iter().flatten();
        turns.filter_map(|(_, _, id)| self.rows.get(id))
    }

    pub(crate) fn claimed_by(&self, agent: &AgentId) -> impl Iterator<Item = ItemId> {
        self.claims.get(agent).into_iter().flatten().copied()
    }

    /// The items that an agent was told of and may claim.
    pub(crate) fn offered_to(&self, agent: &AgentId) -> impl Iterator<Item = ItemId> {
        self.offers.get(agent).into_iter().flatten().copied()
    }

    /// The running time limits.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (&ItemId, &Deadline)> {
        self.limits.iter()
    }

    /// The items that a limit runs for.
    pub(crate) fn limited(&self) -> impl Iterator<Item = &Item> {
        self.limits.keys().filter_map(|id| self.rows.get(id))
    }

    /// Converts every limit to the present boot.
    pub(crate) fn rebase(&mut self, now: &Now) {
        for (id, deadline) in &mut self.limits {
            *deadline = deadline.rebased(now);
            if let Some(watch) = self.rows.get_mut(id).and_then(|item| item.watch.as_mut()) {
                watch.deadline = Some(*deadline);
            }
        }
    }
}
