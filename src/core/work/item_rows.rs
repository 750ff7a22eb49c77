//! Reads and changes items within a decision: a read returns the item as this decision has changed it, or else the item
//! of the working set.

use crate::core::id::{AgentId, ItemId};
use crate::core::rows::item::{Item, Who};
use crate::core::rules::Rules;
use crate::core::tx::{Tx, to_change};
use std::collections::BTreeSet;

impl Tx<'_> {
    pub(crate) fn new_item_id(&mut self) -> ItemId {
        ItemId(self.draw_uuid())
    }

    pub(crate) fn item(&self, id: &ItemId) -> Option<&Item> {
        self.out.items.get(id).or_else(|| self.state.items.get(id))
    }

    /// The item's row, to be changed; `None` for an unknown id.
    pub(crate) fn item_mut(&mut self, id: &ItemId) -> Option<&mut Item> {
        to_change(&mut self.out.items, id, || self.state.items.get(id))
    }

    /// The items that an agent has claimed, the oldest first.
    pub(crate) fn items_claimed_by(&self, agent: &AgentId) -> Vec<ItemId> {
        let is_its = |item: &Item| item.claimed_by.and_then(Who::agent) == Some(*agent);
        self.items_where(self.state.items.claimed_by(agent), is_its)
    }

    /// The items that an agent was notified of and may claim.
    pub(crate) fn items_offered_to(&self, agent: &AgentId) -> Vec<ItemId> {
        self.items_where(self.state.items.offered_to(agent), |item| item.offered_to == Some(*agent))
    }

    fn items_where(&self, before: impl Iterator<Item = ItemId>, fits: impl Fn(&Item) -> bool) -> Vec<ItemId> {
        let changed = self.out.items.values().map(|item| item.item_id);
        let ids: BTreeSet<ItemId> = before.chain(changed).collect();
        let mut found: Vec<&Item> = ids.iter().filter_map(|id| self.item(id)).filter(|item| fits(item)).collect();
        found.sort_by_key(|item| item.order);
        found.into_iter().map(|item| item.item_id).collect()
    }

    pub(crate) fn rules(&self) -> &Rules {
        self.out.rules.as_ref().unwrap_or(&self.state.settings.rules)
    }
}
