//! The demo agent: a small real terminal program with a composer and hooks, so that a whole handoff can be shown and
//! tested on any machine with tmux. It behaves like real agent CLIs, and with [`faults`] it misbehaves like them.
//!
//! Without side effects: [`keys`] (bytes → keys), [`composer`], [`draw`] (state → ANSI), [`model`] (what a prompt asks
//! and what to answer), [`plan`] (a turn as a list of timed acts), [`faults`], [`flaws`] (documents with a flaw). With
//! side effects: [`acknowledge`], [`terminal`], [`hooks`], [`record`], [`transcript`], `tools` (what the agent reads,
//! writes and runs, and its tool calls in the transcript), [`work`] (work items), [`app`] (the state), `turns` and
//! `input` (what changes the state), and [`agent`] (the loop).

pub mod acknowledge;
pub mod agent;
pub mod app;
pub mod composer;
mod document;
pub mod draw;
pub mod faults;
pub mod flaws;
pub mod hooks;
mod input;
pub mod keys;
pub mod model;
pub mod plan;
pub mod record;
pub mod terminal;
mod tools;
pub mod transcript;
mod turn;
mod turns;
mod width;
pub mod work;
