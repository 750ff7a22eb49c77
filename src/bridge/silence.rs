//! For how long a server that lets this host log in has confirmed nothing, and when the bridge leaves it for another
//! one. A server may answer some questions and leave others without an answer: on a full disk it names its streams and
//! stores nothing.

/// How long a connected server may be silent before the operator is told and the bridge leaves it, in milliseconds.
const TOLD_AFTER_MS: u64 = 15_000;
/// Each time that the bridge leaves a server, the next one may be silent for twice as long, but at most for so long, in
/// milliseconds: if all are silent, quick changes help nobody.
const LEFT_AFTER_MS: u64 = 300_000;

/// What a server can be silent about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerMatter {
    /// What is asked about the stream of letters.
    Streams,
    /// Letters, which it does not confirm.
    Letters,
    /// This host's rosters, which it does not confirm.
    Rosters,
}

/// The silence of the connected server, for each matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerSilence([Silence; 3]);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Silence {
    /// Since when, in milliseconds since the machine's boot.
    since_ms: Option<u64>,
    /// How many servers were left for this matter since the last answer.
    left: u32,
}

/// What follows from a question that the server has left unanswered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Unanswered {
    /// The operator is to be told.
    pub is_told: bool,
    /// The bridge leaves the server.
    pub is_left: bool,
}

impl ServerSilence {
    /// A server has answered.
    pub(super) fn answered(&mut self, matter: ServerMatter) {
        self.0[matter as usize] = Silence::default();
    }

    /// No server is connected.
    pub(super) fn cut_off(&mut self) {
        self.0.iter_mut().for_each(|silence| silence.since_ms = None);
    }

    /// The connected server has left one more question unanswered.
    pub(super) fn continues(&mut self, matter: ServerMatter, now_ms: u64) -> Unanswered {
        let silence = &mut self.0[matter as usize];
        let lasts_ms = now_ms.saturating_sub(*silence.since_ms.get_or_insert(now_ms));
        let most_ms = TOLD_AFTER_MS.saturating_mul(1 << silence.left.min(16)).min(LEFT_AFTER_MS);
        let unanswered = Unanswered { is_told: lasts_ms >= TOLD_AFTER_MS, is_left: lasts_ms >= most_ms };
        if unanswered.is_left {
            silence.left = silence.left.saturating_add(1);
            // Questions that are on their way are answered no more.
            self.cut_off();
        }
        unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::ServerMatter::{Letters, Rosters, Streams};
    use super::*;

    /// When it is told and when the server is left, from `from_ms` on, if a question each second is not answered.
    fn silent(silence: &mut ServerSilence, matter: ServerMatter, from_ms: u64, seconds: u64) -> [Vec<u64>; 2] {
        let all: Vec<(u64, Unanswered)> =
            (0..seconds).map(|second| (second, silence.continues(matter, from_ms + second * 1_000))).collect();
        let of = |is: fn(&Unanswered) -> bool| all.iter().filter(move |(_, one)| is(one)).map(|(second, _)| *second);
        [of(|one| one.is_told).collect(), of(|one| one.is_left).collect()]
    }

    #[test]
    fn it_is_told_and_left_after_a_while_and_begins_again_after_an_answer() {
        let mut silence = ServerSilence::default();
        assert_eq!(silent(&mut silence, Streams, 100, 16), [[15], [15]]);
        silence.answered(Streams);
        assert_eq!(silent(&mut silence, Streams, 20_000, 16), [[15], [15]]);
    }

    #[test]
    fn another_matter_and_another_server_count_by_themselves() {
        let mut silence = ServerSilence::default();
        assert_eq!(silent(&mut silence, Letters, 0, 10), [vec![0_u64; 0], Vec::new()]);
        silence.answered(Rosters);
        silence.cut_off();
        assert_eq!(silent(&mut silence, Letters, 10_000, 15), [vec![0_u64; 0], Vec::new()]);
        assert!(silence.continues(Letters, 25_000).is_left);
        assert_eq!(silence.continues(Streams, 26_000), Unanswered::default(), "the server is another one");
    }

    #[test]
    fn servers_that_are_all_silent_are_left_more_and_more_seldom() {
        let mut silence = ServerSilence::default();
        let [told, left] = silent(&mut silence, Rosters, 0, 3_600);
        assert_eq!(left[..5], [15, 46, 107, 228, 469]);
        assert!(left[5..].windows(2).all(|pair| pair[1] - pair[0] == 301), "{left:?}");
        assert!(told.len() > 3_000, "it is told of each");
        silence.answered(Rosters);
        assert_eq!(silent(&mut silence, Rosters, 9_000_000, 16)[1], [15]);
    }
}
