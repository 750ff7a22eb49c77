//! Follows a handoff on another host by what that host tells of itself: its roster has the step of each open handoff, and of
//! the last that have ended.

use super::views;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::follow::{self, FlowEnd, Follower, Progress};
use crate::cli::live::LiveLine;
use crate::cli::view::ViewFile;
use crate::cli::wait::{self, LONGEST, PULSE_EVERY};
use crate::cli::{hosts, output};
use crate::config::Home;
use crate::contract::handoff::{StepError, StepView};
use crate::contract::{HandoffView, HostHandoff};
use crate::core::host::HostName;
use crate::exit;
use serde_json::json;
use std::time::{Duration, Instant};

/// How often the host's file is read.
const READ_EVERY: Duration = Duration::from_millis(100);
/// How often the bridge is told that somebody looks; it keeps the rosters up to date for 60 s.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// How long a handoff may be missing in its host's roster before its view is asked for: the roster comes a few seconds
/// after the answer, and leaves out what ended long ago.
const MISSING_FOR: Duration = Duration::from_secs(20);

/// A handoff on another host, put together step by step from what the host tells of it.
#[derive(Debug)]
pub struct RemoteHandoff {
    host: HostName,
    id: String,
    view: HandoffView,
}

impl RemoteHandoff {
    /// A handoff before its host has told anything of it.
    #[must_use]
    pub fn new(host: &HostName, id: &str) -> RemoteHandoff {
        let view = HandoffView { handoff_id: format!("{id}@{host}"), ..HandoffView::default() };
        RemoteHandoff { host: host.clone(), id: id.to_owned(), view }
    }

    /// A handoff with the step that its host has last told.
    ///
    /// # Errors
    /// When the host's file can't be read.
    pub fn read(home: &Home, host: &HostName, id: &str) -> Result<RemoteHandoff, CliError> {
        let mut handoff = RemoteHandoff::new(host, id);
        handoff.update(home)?;
        Ok(handoff)
    }

    /// What is known of it. Its id has the host behind it, as a person would type it.
    #[must_use]
    pub fn view(&self) -> &HandoffView {
        &self.view
    }

    /// Reads its step again; false if its host does not tell of it.
    fn update(&mut self, home: &Home) -> Result<bool, CliError> {
        let host = hosts::one(home, &self.host)?;
        let told = host.as_ref().and_then(|host| host.handoffs.iter().find(|told| told.handoff_id == self.id));
        told.into_iter().for_each(|told| self.note(told));
        Ok(told.is_some())
    }

    /// Adds a step if it is another one than the last. Steps that passed between two rosters are not seen.
    fn note(&mut self, told: &HostHandoff) {
        let steps = &mut self.view.steps;
        if steps.last().is_none_or(|last| last.step.as_str() != told.step || last.entered_at != told.since) {
            if let Some(last) = steps.last_mut() {
                last.left_at = Some(told.since.clone());
            }
            steps.push(StepView { step: told.step.as_str().into(), entered_at: told.since.clone(), left_at: None });
        }
        self.view.step = told.step.as_str().into();
        self.view.agent_id.clone_from(&told.agent_id);
        self.view.error = told.error.as_ref().map(|code| StepError {
            code: code.clone(),
            message: format!("The handoff failed on the host {}.", self.host),
            hint: format!("See: tasuki handoffs show {}", self.view.handoff_id),
            ..StepError::default()
        });
    }

    /// Follows it to its end.
    ///
    /// # Errors
    /// The handoff's own failure (exit code 1), 69 when this home's bridge stops, 75 when `--timeout` is over. In the
    /// last two cases the handoff itself is not touched.
    pub fn follow_to_end(mut self, session: &CliSession, mut follower: Follower) -> Result<(), CliError> {
        let interrupts = wait::watch_signals()?;
        let mut live = LiveLine::new(&session.out);
        let ended = self.watch(session, &mut follower, &mut live, &|| interrupts.seen());
        live.clear()?;
        let outcome = ended.map_err(|error| wait::after_signal(self.left_alone(error)))?;
        // Only the whole view says what became of it; what the roster says is enough to end the wait.
        let whole = views::handoff(session, &self.host, &self.id).unwrap_or_else(|_| json!(self.view).into());
        wait::report_end(session, &whole, outcome)?;
        let named = HandoffView { handoff_id: self.view.handoff_id.clone(), ..HandoffView::clone(&whole) };
        follow::failure(&named, outcome).map_or(Ok(()), |error| Err(self.of_host(error)))
    }

    fn watch(
        &mut self,
        session: &CliSession,
        follower: &mut Follower,
        live: &mut LiveLine<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<FlowEnd, CliError> {
        let start = Instant::now();
        let patience = session.timeout.unwrap_or(LONGEST);
        let (mut told, mut checked, mut known) = (None, start, start);
        loop {
            if told.is_none_or(|told: Instant| told.elapsed() >= TELL_EVERY) {
                hosts::look(&session.home);
                told = Some(Instant::now());
            }
            if self.update(&session.home)? {
                known = Instant::now();
            } else if known.elapsed() >= MISSING_FOR {
                known = Instant::now();
                if let Some(outcome) = self.end_by_view(session)? {
                    return Ok(outcome);
                }
            }
            for news in follower.observe(&self.view) {
                if let Progress::Ended(outcome) = news {
                    return Ok(outcome);
                }
                wait::report(session, &self.id, live, &news)?;
            }
            live.draw()?;
            if checked.elapsed() >= PULSE_EVERY {
                checked = Instant::now();
                hosts::require_bridge(&session.home)?;
            }
            if stop() {
                return Err(CliError::refused("interrupted", "Interrupted.")
                    .hint(format!("Follow the handoff again: tasuki handoffs follow {}", self.view.handoff_id)));
            }
            if start.elapsed() >= patience {
                let within = humantime::format_duration(patience);
                let message = format!("The handoff has not ended within {within}.");
                return Err(CliError::new(exit::TRY_AGAIN, "still_running", message));
            }
            std::thread::sleep(READ_EVERY);
        }
    }

    /// The end of a handoff that its host no longer tells of, by its whole view. A host that is away or shows no views is
    /// waited for.
    fn end_by_view(&self, session: &CliSession) -> Result<Option<FlowEnd>, CliError> {
        let host = hosts::one(&session.home, &self.host)?;
        if host.is_none_or(|host| host.away_since.is_some()) {
            return Ok(None);
        }
        let whole: Option<ViewFile<HandoffView>> = views::handoff(session, &self.host, &self.id).ok();
        Ok(whole.and_then(|whole| FlowEnd::of(&whole.step)))
    }

    /// The wait ends before the handoff.
    fn left_alone(&self, error: CliError) -> CliError {
        let message = format!("{} The handoff {} is not affected and continues.", error.message, self.view.handoff_id);
        CliError { message, ..error }
    }

    /// A failure with the host on which it happened.
    fn of_host(&self, error: CliError) -> CliError {
        CliError { message: format!("On the host {}: {}", self.host, output::one_line(&error.message)), ..error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(step: &str, second: u32) -> HostHandoff {
        HostHandoff {
            handoff_id: "h".to_owned(),
            step: step.to_owned(),
            since: format!("2026-11-25T12:00:{second:02}.000Z"),
            ..HostHandoff::default()
        }
    }

    fn handoff() -> RemoteHandoff {
        RemoteHandoff::new(&"b".parse().expect("a host"), "h")
    }

    fn words(news: Vec<Progress>) -> Vec<String> {
        let word = |news| match news {
            Progress::Entered { step } => format!("entered {step}"),
            Progress::Passed { step, took_ms, .. } => format!("passed {step} {}", took_ms.unwrap_or_default()),
            Progress::Stopped { step, .. } => format!("stopped {step}"),
            other => format!("{other:?}"),
        };
        news.into_iter().map(word).collect()
    }

    #[test]
    fn each_step_that_is_told_becomes_news_once() {
        let (mut handoff, mut follower) = (handoff(), Follower::new());
        let mut news = |told: &HostHandoff| {
            handoff.note(told);
            words(follower.observe(&handoff.view))
        };
        assert_eq!(news(&told("waiting", 0)), ["entered waiting"]);
        assert!(news(&told("waiting", 0)).is_empty());
        assert_eq!(news(&told("writing", 2)), ["passed waiting 2000", "entered writing"]);
        assert_eq!(news(&told("done", 5)), ["passed writing 3000", "Ended(Done)"]);
    }

    #[test]
    fn the_end_before_a_retry_is_not_the_end_after_it() {
        let mut handoff = handoff();
        let failed = HostHandoff { error: Some("document_missing".to_owned()), ..told("failed", 0) };
        handoff.note(&failed);
        let mut follower = Follower::after(&handoff.view);
        assert!(follower.observe(&handoff.view).is_empty(), "the roster is as old as before the retry");
        handoff.note(&told("starting", 3));
        assert_eq!(words(follower.observe(&handoff.view)), ["entered starting"]);
        handoff.note(&HostHandoff { since: told("", 7).since, ..failed });
        assert_eq!(words(follower.observe(&handoff.view)), ["stopped starting", "Ended(Failed)"]);
        let error = follow::failure(&handoff.view, FlowEnd::Failed).expect("it failed");
        assert_eq!(
            (error.code.as_str(), error.hint.as_deref()),
            ("document_missing", Some("See: tasuki handoffs show h@b"))
        );
    }
}
