//! The bridge between this home and the other hosts of its fleet: the program `tasuki-fleet`. It is a client of the
//! spool, as commands are: it reads views and results, and drops request files. The sidecar knows nothing of it.
//!
//! 1. `commands`: the commands that a person runs, such as those that make a server's folder, admit a host, join a
//!    fleet, give rights and list hosts.
//! 2. `folder`, `settings`, `identity`, `admission`, `owner`, `owner_file`: `HOME/fleet` and the files in it.
//! 3. `run`, `lock`, `state`, `machine`: the loop, what the bridge knows, and what it does about each event. `name`:
//!    keeps this host's name, so that no other bridge serves under it. `asks`: requests of this host to others; their
//!    files are in `dropped`, `out`, `rejected` and `leaving`. `serves`: requests of others to this host, with
//!    `judging`, `answers`, `told`, `kept` and `personas`.
//! 4. `roster`: what this host tells the others of itself. `looks`, `directory`: what the others tell.
//! 5. `audit`: one line for each letter. `sweep`: removes old files.
//!
//! The decisions who is believed and when something is due are made in [`crate::fleet`], not here.

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
mod kept;
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
mod rejected;
mod roster;
mod run;
mod runtime;
mod seen;
mod serves;
mod serving;
mod settings;
mod silence;
mod state;
mod sweep;
mod told;
mod watch;

pub use commands::main;
