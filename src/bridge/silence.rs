//! For how long a server that lets this host log in has confirmed nothing. A server may answer some questions and leave
//! others without an answer: on a full disk it names its streams and stores nothing.

/// How long a connected server may be silent before the operator is told, in milliseconds.
const TOLD_AFTER_MS: u64 = 15_000;

/// Since when the server has been silent about one matter, in milliseconds since the machine's boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Silence(Option<u64>);

impl Silence {
    /// The server has answered, or is not connected.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }

    /// The server has left one more question unanswered. Whether the operator is to be told of it.
    pub(super) fn continues(&mut self, now_ms: u64) -> bool {
        now_ms.saturating_sub(*self.0.get_or_insert(now_ms)) >= TOLD_AFTER_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_after_a_while_and_begins_again_after_an_answer() {
        let mut silence = Silence::default();
        assert_eq!([100, 15_000, 15_100].map(|now_ms| silence.continues(now_ms)), [false, false, true]);
        silence.end();
        assert_eq!([20_000, 34_999, 35_000].map(|now_ms| silence.continues(now_ms)), [false, false, true]);
    }
}
