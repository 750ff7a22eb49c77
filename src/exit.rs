//! The exit codes of every command, in one place (SPEC section 9).

/// Done.
pub const DONE: u8 = 0;
/// Refused or failed.
pub const REFUSED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// No sidecar answers.
pub const UNAVAILABLE: u8 = 69;
/// Try again later.
pub const TRY_AGAIN: u8 = 75;
/// Not allowed.
pub const NOT_ALLOWED: u8 = 77;
/// The configuration or the state is not usable; a restart does not help.
pub const CONFIG: u8 = 78;
