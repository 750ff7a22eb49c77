//! Tests with the real git, with every version of it that `PATH` has.

mod facts;
mod hostile;
mod limits;
mod lookups;
mod places;
mod support;
mod trap;
