//! The demo agent: a small real terminal program with a composer and hooks, so that a whole handoff can be shown and
//! tested on any machine with tmux. It behaves like real agent CLIs, and by [`faults`] it misbehaves like them.
//!
//! Pure: [`keys`] (bytes → keys), [`composer`], [`draw`] (state → ANSI), [`model`] (what a prompt asks and what to
//! answer), [`plan`] (a turn as a list of timed acts), [`faults`], [`flaws`] (documents with a flaw). With side effects:
//! [`acknowledge`], [`terminal`], [`hooks`], [`record`], [`transcript`], `tools` (what it does, as its transcript tells
//! it), [`work`] (work items), [`app`] (the state and what changes it) and [`agent`] (the loop).

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
