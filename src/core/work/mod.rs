//! Work items: pieces of work with a type, for agents of certain roles. A completion is checked, and can be undone.
//!
//! [`crate::core::rules`] say which role processes which type and what an output must hold; `output` and `children`
//! check a completion against them. `items` finds items, and `judge` says who has the
//! role for one. `ask` serves create, claim, release, escalate and comment,
//! `complete` the completion, `rollback` its undoing, and `import` items from elsewhere. `transfer` gives items back
//! when their agent ends, or to its successor. `notices` notifies agents, and `people` the operator. `watch` undoes a
//! completion whose children nobody takes. The stored rows are in [`crate::core::rows::item`].

pub(crate) mod ask;
pub(crate) mod children;
pub(crate) mod complete;
pub(crate) mod import;
mod item_rows;
pub(crate) mod items;
mod judge;
pub mod notices;
pub mod output;
pub(crate) mod people;
pub(crate) mod rollback;
pub(crate) mod transfer;
pub(crate) mod watch;

#[cfg(test)]
mod tests;
