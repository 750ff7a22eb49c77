//! Work items: typed pieces of work between roles, checked at completion and undoable.
//!
//! [`crate::core::rules`] say which role processes which type and what an output must hold; `output` and `children`
//! check against them. `items` finds items. `ask` serves create, claim, release, escalate and comment, `complete` the
//! completion, `rollback` its undoing, and `import` items from elsewhere. `transfer` gives items back when their agent
//! ends, or to its successor. `notices` notifies agents and the operator. `watch` undoes a completion whose children
//! nobody takes. The stored rows are in [`crate::core::rows::item`].

pub(crate) mod ask;
pub(crate) mod children;
pub(crate) mod complete;
pub(crate) mod import;
mod item_rows;
pub(crate) mod items;
pub mod notices;
pub mod output;
pub(crate) mod rollback;
pub(crate) mod transfer;
pub(crate) mod watch;

#[cfg(test)]
mod tests;

use super::rules;
use super::tx::{Failure, Tx};

/// The rules have changed, or can't be used: then the operator is notified, and the old ones stay in force.
pub(crate) fn rules_read(tx: &mut Tx<'_>, rules: Result<Box<rules::Rules>, String>) {
    match rules {
        Ok(rules) => tx.out.rules = Some(*rules),
        Err(why) => tx.notify_error(Failure {
            code: "bad_rules".to_owned(),
            message: format!("The rules for work items can't be used: {why}"),
            hint: "the previous rules stay in force; fix the file, then: tasuki rules check".to_owned(),
            handoff_id: None,
            agent_id: None,
            step: None,
        }),
    }
}
