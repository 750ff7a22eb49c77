//! The fleet: several hosts that ask each other for things, through a courier that is trusted with nothing.
//!
//! Everything except `nats` is pure: keys and bytes come in with the call, and nothing is read from a clock, a file or
//! a network. This folder knows what a letter is and who may send it. The program that carries the letters is in
//! `bridge`.
//!
//! 1. `keys`: a host's two keys, and the fleet's own.
//! 2. `signed`: what one member says to all, with its signature.
//! 3. `members`: who is in the fleet. Only the fleet's key can say that.
//! 4. `roster`: what a host tells all members of itself.
//! 5. `lease`: which bridge serves as a host. The host's roster shows it, and there is one at a time.
//! 6. `letter`: what one host says to another: sealed, so that alteration, cuts and wrong names are noticed.
//! 7. `rights`: which host may ask this one for what. Nobody may ask for anything until its operator says so.
//! 8. `asking`: when a request is published, published again, and given up.
//! 9. `answering`: what is done with a letter from another host.
//! 10. `ages`: how old a request is, at both ends.
//! 11. `jwt`: what the server lets a member do.
//! 12. `nats`: the server, the only part that knows of a network.
//!
//! The courier may lose, repeat, delay, reorder and forge. A forged letter is recognised when it is opened, and a
//! forged list or roster when its signature is checked.

pub mod ages;
pub mod answering;
pub mod asking;
pub mod jwt;
pub mod keys;
pub mod lease;
pub mod letter;
pub mod members;
pub mod nats;
pub mod rights;
pub mod roster;
pub mod signed;
#[cfg(test)]
mod tests;

pub use ages::{CourierTime, Moment};
pub use answering::{FleetRefusal, Judged};
pub use asking::{Asking, AskingStep, TakenRequest};
pub use keys::{AccountKey, BoxKey, FleetKeys, HostKeys, LoginKey, ServerKeys, UserKey};
pub use lease::{Lease, LeaseProblem, Own, RosterStanding};
pub use letter::{Header, Letter, LetterError, LetterPart, What};
pub use members::{Learnt, Member, MemberList, Members};
pub use rights::{Accepts, Right};
pub use roster::{Roster, RosterNumbers, Seen, Teller};
pub use signed::{SignedError, Topic};
