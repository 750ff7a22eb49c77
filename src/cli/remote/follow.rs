//! Follows a handoff on another host. If that host lets this host see views, and answers, the steps come from the
//! handoff's whole view, which has each step. Otherwise they come from the host's roster, which has only the present
//! step of each open handoff, and the last step of those that ended most recently.

use super::looks::{HandoffLooks, Looked};
use super::views;
use crate::cli::error::CliError;
use crate::cli::follow::{self, FlowEnd, Follower, Progress};
use crate::cli::hosts::{self, BridgePulse};
use crate::cli::live::LiveLine;
use crate::cli::output;
use crate::cli::view::ViewFile;
use crate::cli::wait::{self, LONGEST, PULSE_EVERY};
use crate::cli::{ANSWER_SOON, CliSession};
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
/// How long a handoff may be missing in its host's roster before its view is asked for. A new handoff appears in the
/// roster a few seconds after the answer that names it. A handoff that ended long ago is no longer in the roster.
const MISSING_FOR: Duration = Duration::from_secs(20);

/// How long after the last view further views may fail to come before the roster is followed instead.
const WITHOUT_VIEWS: Duration = Duration::from_secs(20);

/// A handoff on another host, with its view. If the host sends no views, the view is put together from the host's
/// rosters.
#[derive(Debug)]
pub struct RemoteHandoff {
    host: HostName,
    id: String,
    view: HandoffView,
    source: StepSource,
}

/// Where the steps of a handoff come from.
#[derive(Debug)]
enum StepSource {
    /// The host's roster.
    Roster,
    /// Not known yet: its view was asked for, and no answer has come.
    Asked(HandoffLooks),
    /// Its views: the last view, and when it came.
    Views(HandoffLooks, Box<ViewFile<HandoffView>>, Instant),
}

impl RemoteHandoff {
    /// A handoff before anything except its id is known.
    #[must_use]
    pub fn new(host: &HostName, id: &str) -> RemoteHandoff {
        let view = HandoffView { handoff_id: format!("{id}@{host}"), ..HandoffView::default() };
        RemoteHandoff { host: host.clone(), id: id.to_owned(), view, source: StepSource::Roster }
    }

    /// A handoff with its step in the last roster of its host.
    ///
    /// # Errors
    /// When the host's file can't be read.
    pub fn read(home: &Home, host: &HostName, id: &str) -> Result<RemoteHandoff, CliError> {
        let mut handoff = RemoteHandoff::new(host, id);
        if let Some(told) = handoff.told(home)? {
            handoff.note(&told);
        }
        Ok(handoff)
    }

    /// The handoff's view, as far as it is known. Its id ends with `@host`, as a person would type it.
    #[must_use]
    pub fn view(&self) -> &HandoffView {
        &self.view
    }

    /// The handoff in the last roster of its host; none if it is not listed there.
    fn told(&self, home: &Home) -> Result<Option<HostHandoff>, CliError> {
        let host = hosts::one(home, &self.host)?;
        Ok(host.and_then(|host| host.handoffs.iter().find(|told| told.handoff_id == self.id).cloned()))
    }

    /// Whether the roster is ahead of the known steps: its step is not among them, and did not begin before the last of
    /// them.
    fn is_news(&self, told: &HostHandoff) -> bool {
        let steps = &self.view.steps;
        let is_known = steps.iter().any(|step| step.step.as_str() == told.step && step.entered_at == told.since);
        !is_known && steps.last().is_none_or(|last| last.entered_at <= told.since)
    }

    /// Takes the answer to a look, if one has come, and reads the roster. False if only the roster is followed, and the
    /// handoff is not in it.
    fn update(&mut self, session: &CliSession, follower: &mut Follower) -> Result<bool, CliError> {
        let answer = match &self.source {
            StepSource::Asked(looks) | StepSource::Views(looks, ..) => looks.answer(),
            StepSource::Roster => None,
        };
        if let Some(answer) = answer {
            self.looked(session, answer, follower);
        }
        let told = self.told(&session.home)?;
        match (&self.source, &told) {
            (StepSource::Views(looks, ..), Some(told)) if self.is_news(told) => looks.again(),
            (StepSource::Roster, Some(told)) if self.is_news(told) => self.note(told),
            _ => {}
        }
        Ok(told.is_some() || !matches!(self.source, StepSource::Roster))
    }

    /// Takes the answer to a look: a view, or the reason why none comes.
    fn looked(&mut self, session: &CliSession, answer: Looked, follower: &mut Follower) {
        let source = std::mem::replace(&mut self.source, StepSource::Roster);
        self.source = match (source, answer) {
            (StepSource::Asked(looks), Ok(whole)) => {
                self.begin_again(&whole, follower);
                self.adopt(&whole);
                StepSource::Views(looks, Box::new(whole), Instant::now())
            }
            (StepSource::Views(looks, ..), Ok(whole)) => {
                self.adopt(&whole);
                StepSource::Views(looks, Box::new(whole), Instant::now())
            }
            (StepSource::Views(looks, whole, at), Err(_)) if at.elapsed() < WITHOUT_VIEWS => {
                StepSource::Views(looks, whole, at)
            }
            (_, Err(error)) => {
                session.out.note(&self.without_views(session, &error));
                StepSource::Roster
            }
            (StepSource::Roster, Ok(_)) => StepSource::Roster,
        };
    }

    /// Called for the first view. If the roster had already shown an end, that end is from before the request and does
    /// not end the wait: the follower begins after it. The steps up to that end are counted in the view, because the
    /// roster has fewer.
    fn begin_again(&self, whole: &HandoffView, follower: &mut Follower) {
        let Some(known) = self.view.steps.last().filter(|_| FlowEnd::of(&self.view.step).is_some()) else { return };
        let before = whole.steps.iter().filter(|step| step.entered_at <= known.entered_at).cloned().collect();
        *follower =
            Follower::after(&HandoffView { step: self.view.step.clone(), steps: before, ..HandoffView::default() });
    }

    fn adopt(&mut self, whole: &HandoffView) {
        self.view = HandoffView { handoff_id: format!("{}@{}", self.id, self.host), ..whole.clone() };
    }

    /// The note that only the roster is followed, and why.
    fn without_views(&self, session: &CliSession, error: &CliError) -> String {
        let host = &self.host;
        let own = hosts::own_name(&session.home).ok().flatten().map(|own| own.to_string()).unwrap_or_default();
        let why = match error.code.as_str() {
            "not_accepted" => {
                format!("{host} does not let this host see views (there: tasuki fleet accept {own} view)")
            }
            _ => format!("{host} sends no views at this moment ({})", output::one_line(&error.code)),
        };
        format!("{why}: steps that pass between two of its reports are not shown.")
    }

    /// Adds the step in a roster. Steps that passed between two rosters are missing.
    fn note(&mut self, told: &HostHandoff) {
        let steps = &mut self.view.steps;
        if let Some(last) = steps.last_mut() {
            last.left_at = Some(told.since.clone());
        }
        steps.push(StepView { step: told.step.as_str().into(), entered_at: told.since.clone(), left_at: None });
        self.view.step = told.step.as_str().into();
        self.view.agent_id.clone_from(&told.agent_id);
        self.view.error = told.error.as_ref().map(|code| StepError {
            code: code.clone(),
            message: format!("The handoff failed on the host {}.", self.host),
            hint: format!("See: tasuki handoffs show {}", self.view.handoff_id),
            ..StepError::default()
        });
    }

    /// Follows the handoff to its end.
    ///
    /// # Errors
    /// The handoff's own failure (exit code 1), 69 when this home's bridge ends, 75 when `--timeout` is over. In the
    /// last two cases the handoff itself is not touched.
    pub fn follow_to_end(mut self, session: &CliSession, mut follower: Follower) -> Result<(), CliError> {
        let interrupts = wait::watch_signals()?;
        if let Ok(looks) = HandoffLooks::begin(&session.home, &self.host, &self.id) {
            self.source = StepSource::Asked(looks);
        }
        let mut live = LiveLine::new(&session.out);
        let ended = self.watch(session, &mut follower, &mut live, &|| interrupts.seen());
        live.clear()?;
        let outcome = ended.map_err(|error| wait::after_signal(self.left_alone(error)))?;
        // The roster is enough to end the wait, but only the whole view says what became of the handoff.
        let whole = match std::mem::replace(&mut self.source, StepSource::Roster) {
            StepSource::Views(_, whole, _) => *whole,
            StepSource::Asked(_) | StepSource::Roster => {
                let seen = views::look_at_handoff(&session.home, &self.host, &self.id, ANSWER_SOON);
                seen.unwrap_or_else(|_| json!(self.view).into())
            }
        };
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
        let mut pulse = BridgePulse::default();
        loop {
            if told.is_none_or(|told: Instant| told.elapsed() >= TELL_EVERY) {
                hosts::ask_for_rosters(&session.home);
                told = Some(Instant::now());
            }
            if self.update(session, follower)? {
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
                pulse.keep(&session.home)?;
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

    /// Asks for the view of a handoff that is not in its host's roster, and returns how it has ended. None if it has
    /// not ended, or if the host is away or sends no views: the wait then continues.
    fn end_by_view(&self, session: &CliSession) -> Result<Option<FlowEnd>, CliError> {
        let host = hosts::one(&session.home, &self.host)?;
        if host.is_none_or(|host| host.away_since.is_some()) {
            return Ok(None);
        }
        // A question to a host that is cut off must not outlast the wait itself.
        let whole = views::look_at_handoff(&session.home, &self.host, &self.id, ANSWER_SOON).ok();
        Ok(whole.and_then(|whole| FlowEnd::of(&whole.step)))
    }

    /// The error of a wait that ends before the handoff does.
    fn left_alone(&self, error: CliError) -> CliError {
        let message = format!("{} The handoff {} is not affected and continues.", error.message, self.view.handoff_id);
        CliError { message, ..error }
    }

    /// The handoff's own failure, with the host on which it happened.
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

    /// Takes a roster as `update` does if only the roster is followed.
    fn hear(handoff: &mut RemoteHandoff, told: &HostHandoff) {
        if handoff.is_news(told) {
            handoff.note(told);
        }
    }

    #[test]
    fn each_step_in_a_roster_becomes_news_once() {
        let (mut handoff, mut follower) = (handoff(), Follower::new());
        let mut news = |told: &HostHandoff| {
            hear(&mut handoff, told);
            words(follower.observe(&handoff.view))
        };
        assert_eq!(news(&told("waiting", 0)), ["entered waiting"]);
        assert!(news(&told("waiting", 0)).is_empty());
        assert_eq!(news(&told("writing", 2)), ["passed waiting 2000", "entered writing"]);
        assert!(news(&told("waiting", 0)).is_empty(), "an older roster says nothing new");
        assert_eq!(news(&told("done", 5)), ["passed writing 3000", "Ended(Done)"]);
    }

    #[test]
    fn after_a_retry_the_view_is_followed_from_where_the_roster_had_ended() {
        let steps = [("waiting", 0), ("writing", 1), ("failed", 4), ("starting", 9), ("briefing", 10)];
        let whole = |count: usize| {
            let steps = &steps[..count];
            let left = |at: usize| steps.get(at + 1).map(|(_, second)| told("", *second).since);
            let view = |(at, (step, second)): (usize, &(&str, u32))| StepView {
                step: (*step).into(),
                entered_at: told("", *second).since,
                left_at: left(at),
            };
            let step = steps.last().map_or("", |(step, _)| step).into();
            HandoffView { step, steps: steps.iter().enumerate().map(view).collect(), ..HandoffView::default() }
        };
        let mut handoff = handoff();
        hear(&mut handoff, &told("failed", 4));
        let mut follower = Follower::after(&handoff.view);
        handoff.begin_again(&whole(5), &mut follower);
        handoff.adopt(&whole(5));
        let news = words(follower.observe(&handoff.view));
        assert_eq!(news, ["entered starting", "passed starting 1000", "entered briefing"]);
        assert_eq!(handoff.view.handoff_id, "h@b");
        // First the roster is behind the view, then ahead of it.
        assert!(!handoff.is_news(&told("failed", 4)) && !handoff.is_news(&told("starting", 9)));
        assert!(handoff.is_news(&told("reading", 12)));
        // A view from before the retry does not end the wait.
        let mut follower = Follower::after(&handoff.view);
        let mut stale = super::tests::handoff();
        hear(&mut stale, &told("failed", 4));
        stale.begin_again(&whole(3), &mut follower);
        stale.adopt(&whole(3));
        assert!(follower.observe(&stale.view).is_empty());
    }

    #[test]
    fn the_end_before_a_retry_is_not_the_end_after_it() {
        let mut handoff = handoff();
        let failed = HostHandoff { error: Some("document_missing".to_owned()), ..told("failed", 0) };
        hear(&mut handoff, &failed);
        let mut follower = Follower::after(&handoff.view);
        assert!(follower.observe(&handoff.view).is_empty(), "the roster is as old as before the retry");
        hear(&mut handoff, &told("starting", 3));
        assert_eq!(words(follower.observe(&handoff.view)), ["entered starting"]);
        hear(&mut handoff, &HostHandoff { since: told("", 7).since, ..failed });
        assert_eq!(words(follower.observe(&handoff.view)), ["stopped starting", "Ended(Failed)"]);
        let error = follow::failure(&handoff.view, FlowEnd::Failed).expect("it failed");
        assert_eq!(
            (error.code.as_str(), error.hint.as_deref()),
            ("document_missing", Some("See: tasuki handoffs show h@b"))
        );
    }
}
