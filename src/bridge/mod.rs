//! The bridge between this home and the other hosts of its fleet: the program `tasuki-fleet`. It is a client of the
//! spool, as commands are: it reads views and results, and drops request files. The sidecar knows nothing of it.
//!
//! 1. `commands`: what a person does: making a server's folder, joining, admitting, rights, looking.
//! 2. `folder`, `settings`, `identity`, `admission`, `owner`, `owner_file`: `HOME/fleet` and what lies in it.
//! 3. `run`, `lock`, `state`, `machine`: the loop, what the bridge knows, and what it does about each event. `name`: being
//!    this host, and no other bridge being it too. `asks`: requests of this host, with `dropped`, `out` and `leaving`, their
//!    files. `serves`: requests to this host, with `judging`, `answers`, `told` and `personas`.
//! 4. `roster`: what this host tells of itself. `looks`, `directory`: what others tell.
//! 5. `audit`: one line for each letter. `sweep`: nothing grows for ever.
//!
//! Nothing here decides by itself who is believed or what is due: that is in [`crate::fleet`].

mod admission;
mod answers;
mod asks;
mod audit;
mod commands;
mod directory;
mod dropped;
mod folder;
mod identity;
mod judging;
mod leaving;
mod lock;
mod looks;
mod machine;
mod members_file;
mod name;
mod out;
mod owner;
mod owner_file;
mod personas;
mod problem;
mod refused;
mod roster;
mod run;
mod runtime;
mod seen;
mod serves;
mod serving;
mod settings;
mod state;
mod sweep;
mod told;
mod watch;

pub use commands::main;
