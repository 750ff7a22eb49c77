//! Brings what others read up to date with the store: at the start, and after a commit of which nothing was known.

use super::Sidecar;
use crate::core::id::RequestId;
use crate::core::view;
use crate::spool::Place;
use serde_json::Value;

impl Sidecar {
    pub(super) fn results_again(&mut self, results: Vec<(RequestId, Value)>) {
        for (id, result) in results {
            let (place, text) = (Place::Result(id), result.to_string());
            if !self.spool.holds(&place, text.as_bytes()) {
                self.projector.put(&self.spool, place, text);
            }
        }
    }

    /// Writes views that may be older than the store; all of them where the folder was not built by this home.
    pub(super) fn views_again(&mut self, dirty: Vec<String>) {
        let mark = self.home.view().join(".built");
        let tag = self.store.home_tag().unwrap_or_default();
        let is_built = std::fs::read_to_string(&mark).is_ok_and(|text| text == tag);
        let mut views = dirty;
        if !is_built {
            views.extend(self.state.agents.keys().map(|id| format!("agents/{id}")));
            views.extend(self.state.handoffs.keys().map(|id| format!("handoffs/{id}")));
            if let Ok((agents, handoffs)) = self.store.past_ids() {
                views.extend(agents.iter().map(|id| format!("agents/{id}")));
                views.extend(handoffs.iter().map(|id| format!("handoffs/{id}")));
            }
        }
        for view in views {
            self.view_again(&view);
        }
        if !is_built && let Err(error) = std::fs::write(&mark, tag) {
            tracing::warn!(%error, "the view folder can't be marked as built");
        }
    }

    fn view_again(&mut self, name: &str) {
        let Some((kind, id)) = name.split_once('/') else { return };
        let found = match (kind, id.parse(), id.parse()) {
            ("agents", Ok(id), _) => {
                let row = self.state.agents.get(&id).cloned();
                let row = row.or_else(|| self.store.past_agent(&id).ok().flatten());
                row.map(|row| (Place::Agent(id), view::agent(&row)))
            }
            ("handoffs", _, Ok(id)) => {
                let row = self.state.handoffs.get(&id).cloned();
                let row = row.or_else(|| self.store.past_handoff(&id).ok().flatten());
                row.map(|row| (Place::Handoff(id), view::handoff(&row)))
            }
            _ => None,
        };
        let Some((place, json)) = found else { return };
        if !self.spool.holds(&place, json.to_string().as_bytes()) {
            self.projector.view(&self.spool, place, &json);
        }
    }
}
