//! Whether requests are answered. A loop that turns proves nothing of that, so at each tick a probe goes the way that
//! requests go: it is taken when their lane was looked at, decided with them, and comes back when what was decided is
//! durable and shown. And what lies in their lane is looked at beside the scan that should take it.

use crate::core::text::sanitise;
use crate::core::time::Now;
use crate::files::Stamp;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// A probe that is out so long, and a request that lies so long while none is taken, in milliseconds: nobody answers.
const SILENT_MS: u64 = 15_000;
/// A request that lies so long while others are taken, in milliseconds.
const FORGOTTEN_MS: u64 = 60_000;

/// What is known of it, by the clock that goes on while the machine sleeps.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// When a probe last came back.
    probed_ms: u64,
    /// When files of requests were last taken.
    took_ms: u64,
    /// What lay there at the last tick, and since which tick it has lain there in this state.
    lying: BTreeMap<OsString, (Stamp, u64)>,
    /// When a turn last looked at the requests that lay there, and made durable and showed what it decided.
    pub(super) taken_at: Option<String>,
    pub(super) judged: Judged,
}

/// What follows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) is_silent: bool,
    /// What is wrong, for people.
    pub(super) problem: Option<String>,
}

impl Answers {
    /// Nothing is known yet.
    pub(super) fn new(now: &Now) -> Answers {
        Answers { probed_ms: now.boot_ms, took_ms: now.boot_ms, ..Answers::default() }
    }

    /// Everything counts from now on: after a time in which the process stood still.
    pub(super) fn begin(&mut self, now: &Now) {
        (self.probed_ms, self.took_ms) = (now.boot_ms, now.boot_ms);
        self.lying.clear();
    }

    /// Judges by what became of the probes, and by what lies there at this moment.
    pub(super) fn look(&mut self, lying: Vec<(OsString, Stamp)>, now: &Now) {
        self.judged = self.judge(lying, now);
        if let Some(problem) = &self.judged.problem {
            tracing::error!(problem, "requests are not answered");
        }
    }

    /// What was gathered is decided, durable and shown. While the events of a long absence are taken, requests have to wait,
    /// and those events show that things go on.
    pub(super) fn answered(&mut self, now: &Now, probed: bool, took_requests: bool, drained: bool) {
        if probed || took_requests {
            self.taken_at = Some(now.stamp());
        }
        if probed || !drained {
            self.probed_ms = now.boot_ms;
        }
        if took_requests {
            self.took_ms = now.boot_ms;
        }
    }

    fn judge(&mut self, lying: Vec<(OsString, Stamp)>, now: &Now) -> Judged {
        let before = std::mem::take(&mut self.lying);
        let since = |name: &OsString, stamp: &Stamp| {
            before.get(name).filter(|(known, _)| known == stamp).map_or(now.boot_ms, |(_, since)| *since)
        };
        self.lying = lying.into_iter().map(|(name, stamp)| (name.clone(), (stamp, since(&name, &stamp)))).collect();
        let ago = |ms: u64| now.boot_ms.saturating_sub(ms);
        let oldest = self.lying.iter().min_by_key(|(_, (_, since))| *since);
        let oldest = oldest.map(|(name, (_, since))| (sanitise(&name.to_string_lossy()), ago(*since)));
        if ago(self.probed_ms) > SILENT_MS {
            let said = format!("for {} s no request could be answered", ago(self.probed_ms) / 1_000);
            return Judged { is_silent: true, problem: Some(said) };
        }
        let Some((name, age_ms)) = oldest else { return Judged::default() };
        let is_silent = age_ms > SILENT_MS && ago(self.took_ms) > SILENT_MS;
        let said = format!("{name} has lain in spool/requests for {} s and was not taken", age_ms / 1_000);
        Judged { is_silent, problem: (is_silent || age_ms > FORGOTTEN_MS).then_some(said) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot_ms: u64) -> Now {
        Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms }
    }

    fn lying(names: &[&str], ctime_ns: i64) -> Vec<(OsString, Stamp)> {
        let stamp = Stamp { dev: 1, ino: 2, size: 3, mtime_ns: 4, ctime_ns };
        names.iter().map(|name| (OsString::from(name), stamp)).collect()
    }

    #[test]
    fn a_probe_that_does_not_come_back_is_silence() {
        let mut answers = Answers::new(&at(1_000));
        assert_eq!(answers.judge(Vec::new(), &at(16_000)), Judged::default());
        let judged = answers.judge(Vec::new(), &at(17_000));
        assert!(judged.is_silent, "{judged:?}");
        assert_eq!(judged.problem.as_deref(), Some("for 16 s no request could be answered"));
        answers.probed_ms = 18_000;
        assert_eq!(answers.judge(Vec::new(), &at(20_000)), Judged::default());
    }

    #[test]
    fn a_request_that_nobody_takes_is_silence_and_one_that_is_passed_over_is_told() {
        let mut answers = Answers::default();
        for ms in (0..=100_000).step_by(5_000) {
            answers.probed_ms = ms;
            let judged = answers.judge(lying(&["a.json"], 1), &at(ms));
            assert_eq!(judged.is_silent, ms > 15_000, "{ms}: {judged:?}");
        }
        let mut answers = Answers::default();
        for tick in 0..=20_u32 {
            let ms = u64::from(tick) * 5_000;
            (answers.probed_ms, answers.took_ms) = (ms, ms);
            // Another state of the other file at each tick: somebody writes it.
            let there = lying(&["b.json"], i64::from(tick)).into_iter().chain(lying(&["a.json"], 1));
            let judged = answers.judge(there.collect(), &at(ms));
            assert!(!judged.is_silent, "{ms}: {judged:?}");
            assert_eq!(judged.problem.is_some_and(|said| said.starts_with("a.json has lain")), ms > 60_000, "{ms}");
        }
    }
}
