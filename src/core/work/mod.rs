//! Work items: typed handoffs between roles, validated and undoable (SPEC section 7).
//!
//! [`crate::core::rules`] say who processes which type and what an output must hold, `output` and `children` judge by them; `items` finds
//! them, `ask` serves create, claim, release, escalate and comment, `complete` the completion and what goes with it, `rollback` its undoing,
//! `import` what comes from elsewhere; `carry` follows the life of agents and handoffs, `notices` tells agents and the
//! operator, `watch` undoes what nobody has taken. What is stored of them is [`crate::core::rows::item`].

pub(crate) mod ask;
pub(crate) mod carry;
pub(crate) mod children;
pub(crate) mod complete;
pub(crate) mod import;
pub(crate) mod items;
pub mod notices;
pub mod output;
mod pencil;
pub(crate) mod rollback;
pub(crate) mod watch;

#[cfg(test)]
mod tests;

use super::rules;
use super::tx::{Failure, Tx};

/// The rules have changed, or can't be used: that is told, and the old ones stay in force.
pub(crate) fn rules_read(tx: &mut Tx<'_>, rules: Result<Box<rules::Rules>, String>) {
    match rules {
        Ok(rules) => tx.out.rules = Some(*rules),
        Err(why) => tx.tell_error(Failure {
            code: "bad_rules".to_owned(),
            message: format!("The rules for work items can't be used: {why}"),
            hint: "the old rules stay in force; mend the file, then: tasuki rules check".to_owned(),
            handoff_id: None,
            agent_id: None,
            step: None,
        }),
    }
}
