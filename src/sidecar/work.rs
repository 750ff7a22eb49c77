//! What work items need of the disk: rows of history that a request names, the rules, which are read again when they
//! change, and the roles of personas; and the marks of items that are not done.

use super::Sidecar;
use crate::config::{Home, rules};
use crate::contract;
use crate::core::decision::Decision;
use crate::core::event::Event;
use crate::core::id::{ItemId, Slug};
use crate::core::request::Needs;
use crate::core::rules::Rules;
use crate::core::time::{Deadline, Now};
use crate::core::view;
use crate::files::{self, Stamp};
use crate::personas;
use crate::spool::{Place, Shelf};
use crate::store::Error;
use std::collections::{BTreeMap, BTreeSet};

/// A file that can't be used and was changed less than so many milliseconds ago may not be whole yet.
const FRESH_MS: i64 = 2_000;

/// What was seen last.
#[derive(Default)]
pub(super) struct Watched {
    rules: Option<Stamp>,
    /// Personas whose role was looked for, and what their files were then.
    known: BTreeMap<Slug, Option<Stamp>>,
    /// The roles that were found: several may be found before the first of them is decided.
    roles: BTreeMap<Slug, String>,
}

impl Watched {
    /// Reads the rules with which a start begins.
    ///
    /// # Errors
    /// They can't be used.
    pub(super) fn begin(home: &Home) -> Result<(Watched, Rules), rules::RulesFileError> {
        let stamp = files::stamp(&home.rules());
        let rules = rules::load(&home.rules())?;
        Ok((Watched { rules: stamp, ..Watched::default() }, rules))
    }
}

impl Sidecar {
    /// Reads the rules again if their file has changed. What can't be used is told once for each state of the file.
    pub(super) fn look_at_rules(&mut self, now: &Now) {
        let path = self.home.rules();
        let stamp = files::stamp(&path);
        if stamp == self.rules.rules {
            return;
        }
        let age_ms = stamp.map_or(i64::MAX, |stamp| now.wall_ms.saturating_sub(stamp.mtime_ns / 1_000_000));
        let read = rules::load(&path);
        if read.is_err() && (0..FRESH_MS).contains(&age_ms) {
            let wait = u64::try_from(FRESH_MS - age_ms).unwrap_or(0);
            self.pending.tick = Some(Deadline::after(now, wait));
            return;
        }
        self.rules.rules = stamp;
        match read {
            Ok(rules) => {
                tracing::info!("the rules for work items were read again");
                self.pending.events.push(Event::Rules(Ok(Box::new(rules))));
            }
            Err(error) => {
                tracing::error!(%error, "the rules for work items stay as they were");
                self.pending.events.push(Event::Rules(Err(error.to_string())));
            }
        }
    }

    /// What a request about work is judged by is looked at before it is.
    pub(super) fn look_before_work(&mut self, needs: &Needs<'_>, now: &Now) {
        if needs.rules {
            self.look_at_rules(now);
        }
        let agent = needs.role_of.and_then(|id| self.agent_named(id));
        if let Some(slug) = agent.and_then(|agent| agent.persona_slug.clone()) {
            self.learn(&[slug]);
        }
    }

    /// Looks for the roles of all personas that live.
    pub(super) fn learn_roles(&mut self) {
        let live = self.state.agents.values().filter(|agent| agent.state.is_live());
        let slugs: BTreeSet<Slug> = live.filter_map(|agent| agent.persona_slug.clone()).collect();
        self.rules.known.retain(|slug, _| slugs.contains(slug));
        self.rules.roles.retain(|slug, _| slugs.contains(slug));
        self.learn(&slugs.into_iter().collect::<Vec<_>>());
    }

    /// The same for those that were not known before.
    pub(super) fn learn_new_roles(&mut self, decision: &Decision) {
        let live = decision.agents.values().filter(|agent| agent.state.is_live());
        let slugs: BTreeSet<Slug> = live.filter_map(|agent| agent.persona_slug.clone()).collect();
        let new: Vec<Slug> = slugs.into_iter().filter(|slug| !self.rules.known.contains_key(slug)).collect();
        self.learn(&new);
    }

    /// Reads the roles of those whose files have changed.
    fn learn(&mut self, slugs: &[Slug]) {
        let folder = self.home.personas();
        let stamps = slugs.iter().map(|slug| (slug, personas::stamp(&folder, slug)));
        let changed: Vec<_> = stamps.filter(|(slug, stamp)| self.rules.known.get(slug) != Some(stamp)).collect();
        if changed.is_empty() {
            return;
        }
        let before = self.rules.roles.clone();
        for (slug, stamp) in changed {
            self.rules.known.insert(slug.clone(), stamp);
            match personas::role(&folder, slug) {
                Ok(Some(role)) => drop(self.rules.roles.insert(slug.clone(), role)),
                Ok(None) => drop(self.rules.roles.remove(slug)),
                // What was known of it still counts; whoever starts such a persona is told what is wrong.
                Err(error) => tracing::debug!(%error, "a persona's role can't be read"),
            }
        }
        if self.rules.roles != before {
            self.pending.events.push(Event::Roles(self.rules.roles.clone()));
        }
    }

    pub(super) fn page_in_item(&mut self, id: ItemId) -> Result<(), Error> {
        if !self.state.items.contains(&id)
            && let Some(item) = self.store.past_item(&id)?
        {
            self.state.items.insert(item);
            self.pending.paged_items.push(id);
        }
        Ok(())
    }

    /// An item's view as it should be.
    pub(super) fn item_again(&self, id: &str) -> Option<(Place, String)> {
        let id: ItemId = id.parse().ok()?;
        let row = self.state.items.get(&id).cloned().or_else(|| self.store.past_item(&id).ok().flatten());
        row.map(|row| (Place::Work(id.0), contract::text(&view::item(&row))))
    }

    /// Brings the marks of items that are not done up to date.
    pub(super) fn open_items_again(&mut self) {
        let there: BTreeSet<ItemId> = match self.spool.ids(Shelf::OpenWork) {
            Ok(ids) => ids.into_iter().map(ItemId).collect(),
            Err(error) => {
                tracing::warn!(%error, "it can't be seen which items are marked as open");
                return;
            }
        };
        let open: BTreeSet<ItemId> =
            self.state.items.values().filter(|item| item.is_open()).map(|item| item.item_id).collect();
        self.projector.open_items.clone_from(&there);
        for id in there.symmetric_difference(&open) {
            self.projector.mark_open(&self.spool, *id, open.contains(id));
        }
    }
}
