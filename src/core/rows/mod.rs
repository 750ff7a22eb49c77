//! The rows that the store keeps. They hold what is known; the state machines above them decide what follows from it
//! and change the rows. A row's own methods use only its fields.

pub mod ack;
pub mod agent;
pub mod chain;
pub mod choice;
pub mod examined;
pub mod handoff;
pub mod item;
pub mod items;
pub mod lookup;
pub mod outbox;
pub mod publishing;
