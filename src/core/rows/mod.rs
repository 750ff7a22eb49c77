//! The rows that are stored, below the machines that change them: what is known, not what follows from it. A row's own
//! methods answer from its fields alone.

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
