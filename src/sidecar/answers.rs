//! Checks that requests are answered. A running loop does not prove that, so each tick sends a probe through the stages
//! of a request: the probe begins when the lane of requests was scanned, is decided with the requests, and returns when
//! the decision is durable and visible. The files in that lane are also listed independently of the scan that should
//! take them.

use crate::core::text::sanitise;
use crate::core::time::Now;
use crate::files::FileStamp;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// How long, in milliseconds, until requests count as not being answered: no probe has returned for this long, or a
/// request has waited this long while no other was taken.
const SILENT_MS: u64 = 15_000;
/// How long a request may wait while others are taken, in milliseconds.
const FORGOTTEN_MS: u64 = 60_000;

/// Measures whether requests are answered. Times are in milliseconds of the clock that keeps running while the machine
/// sleeps.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// When a probe last came back.
    probed_ms: u64,
    /// When files of requests were last taken.
    took_ms: u64,
    /// The files in the lane at the last tick. Each has its stamp, and the time when it was first seen with this stamp.
    waiting: BTreeMap<OsString, (FileStamp, u64)>,
    /// When a cycle last took requests or a probe, and made its decision durable and visible.
    pub(super) taken_at: Option<String>,
    pub(super) judged: AnswerHealth,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerHealth {
    pub(super) is_silent: bool,
    pub(super) problem: Option<String>,
}

impl Answers {
    pub(super) fn new(now: &Now) -> Answers {
        Answers { probed_ms: now.boot_ms, took_ms: now.boot_ms, ..Answers::default() }
    }

    /// Restarts every measurement, after the process was stopped for a while.
    pub(super) fn begin(&mut self, now: &Now) {
        (self.probed_ms, self.took_ms) = (now.boot_ms, now.boot_ms);
        self.waiting.clear();
    }

    /// Judges by the probes, and by the files that are in the lane now.
    pub(super) fn look(&mut self, waiting: Vec<(OsString, FileStamp)>, now: &Now) {
        self.judged = self.judge(waiting, now);
        if let Some(problem) = &self.judged.problem {
            tracing::error!(problem, "requests are not being answered");
        }
    }

    /// The cycle's input is decided, durable and visible. After a long absence, requests wait until the files from that
    /// time are taken (`drained`). Taking those files proves that the loop works, so how long requests wait is measured
    /// only after that.
    pub(super) fn answered(&mut self, now: &Now, probed: bool, took_requests: bool, drained: bool) {
        if probed || took_requests {
            self.taken_at = Some(now.rfc3339());
        }
        if !drained {
            return self.begin(now);
        }
        if probed {
            self.probed_ms = now.boot_ms;
        }
        if took_requests {
            self.took_ms = now.boot_ms;
        }
    }

    fn judge(&mut self, waiting: Vec<(OsString, FileStamp)>, now: &Now) -> AnswerHealth {
        let before = std::mem::take(&mut self.waiting);
        let since = |name: &OsString, file_stamp: &FileStamp| {
            before.get(name).filter(|(known, _)| known == file_stamp).map_or(now.boot_ms, |(_, since)| *since)
        };
        self.waiting = waiting
            .into_iter()
            .map(|(name, file_stamp)| (name.clone(), (file_stamp, since(&name, &file_stamp))))
            .collect();
        let ago = |ms: u64| now.boot_ms.saturating_sub(ms);
        let oldest = self.waiting.iter().min_by_key(|(_, (_, since))| *since);
        let oldest = oldest.map(|(name, (_, since))| (sanitise(&name.to_string_lossy()), ago(*since)));
        if ago(self.probed_ms) > SILENT_MS {
            let said = format!("tasuki has answered no request for {} s", ago(self.probed_ms) / 1_000);
            return AnswerHealth { is_silent: true, problem: Some(said) };
        }
        let Some((name, age_ms)) = oldest else { return AnswerHealth::default() };
        let is_silent = age_ms > SILENT_MS && ago(self.took_ms) > SILENT_MS;
        let said = format!("{name} has been in spool/requests for {} s and was not read", age_ms / 1_000);
        AnswerHealth { is_silent, problem: (is_silent || age_ms > FORGOTTEN_MS).then_some(said) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot_ms: u64) -> Now {
        Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms }
    }

    fn waiting(names: &[&str], ctime_ns: i64) -> Vec<(OsString, FileStamp)> {
        let file_stamp = FileStamp { dev: 1, ino: 2, size: 3, mtime_ns: 4, ctime_ns };
        names.iter().map(|name| (OsString::from(name), file_stamp)).collect()
    }

    #[test]
    fn requests_are_not_answered_if_a_probe_does_not_return() {
        let mut answers = Answers::new(&at(1_000));
        assert_eq!(answers.judge(Vec::new(), &at(16_000)), AnswerHealth::default());
        let judged = answers.judge(Vec::new(), &at(17_000));
        assert!(judged.is_silent, "{judged:?}");
        assert_eq!(judged.problem.as_deref(), Some("tasuki has answered no request for 16 s"));
        answers.probed_ms = 18_000;
        assert_eq!(answers.judge(Vec::new(), &at(20_000)), AnswerHealth::default());
    }

    #[test]
    fn a_request_that_waits_for_the_events_of_a_long_absence_is_not_a_problem() {
        let mut answers = Answers::new(&at(0));
        for tick in 1..=40_u32 {
            let ms = u64::from(tick) * 5_000;
            answers.answered(&at(ms - 1), false, false, false);
            let judged = answers.judge(waiting(&["a.json"], 1), &at(ms));
            assert_eq!(judged, AnswerHealth::default(), "{ms}");
        }
        answers.answered(&at(201_000), false, false, true);
        let judged = answers.judge(waiting(&["a.json"], 1), &at(220_000));
        assert!(judged.is_silent, "after that it counts again: {judged:?}");
    }

    #[test]
    fn a_request_that_is_not_taken_is_a_problem_and_stops_the_heartbeat_if_none_is_taken() {
        let mut answers = Answers::default();
        for ms in (0..=100_000).step_by(5_000) {
            answers.probed_ms = ms;
            let judged = answers.judge(waiting(&["a.json"], 1), &at(ms));
            assert_eq!(judged.is_silent, ms > 15_000, "{ms}: {judged:?}");
        }
        let mut answers = Answers::default();
        for tick in 0..=20_u32 {
            let ms = u64::from(tick) * 5_000;
            (answers.probed_ms, answers.took_ms) = (ms, ms);
            // The other file changes at each tick: it is being written.
            let there = waiting(&["b.json"], i64::from(tick)).into_iter().chain(waiting(&["a.json"], 1));
            let judged = answers.judge(there.collect(), &at(ms));
            assert!(!judged.is_silent, "{ms}: {judged:?}");
            assert_eq!(
                judged.problem.is_some_and(|said| said.starts_with("a.json has been in spool")),
                ms > 60_000,
                "{ms}"
            );
        }
    }
}
