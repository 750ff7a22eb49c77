//! Arguments → command → exit code.
fn main() {}
