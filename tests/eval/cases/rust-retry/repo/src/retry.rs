/// How long to wait before the next try, in milliseconds.
pub fn delay(attempt: u32) -> u64 {
    100 * u64::from(attempt)
}
