//! Asks another host for the whole view of a handoff again and again, in a thread beside the wait that shows the
//! handoff. It asks at once, then soon after the host's roster has shown a change, and otherwise every 17 s. A view has
//! each step; a roster has only the present step.

use super::views;
use crate::cli::error::CliError;
use crate::cli::view::ViewFile;
use crate::config::Home;
use crate::contract::HandoffView;
use crate::core::host::HostName;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// The shortest time from one question to the next.
const EVERY: Duration = Duration::from_secs(2);
/// How long, after [`EVERY`] has passed, a change in the roster is waited for before the host is asked without one.
const AT_LEAST_EVERY: Duration = Duration::from_secs(15);
/// How long one answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The answer to one look.
pub(super) type Looked = Result<ViewFile<HandoffView>, CliError>;

/// The looks, in a thread of their own, which ends after this is dropped. One question is open at a time.
#[derive(Debug)]
pub(super) struct HandoffLooks {
    answers: Receiver<Looked>,
    again: SyncSender<()>,
}

impl HandoffLooks {
    /// Begins to look.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn begin(home: &Home, host: &HostName, id: &str) -> std::io::Result<HandoffLooks> {
        let (home, host, id) = (home.clone(), host.clone(), id.to_owned());
        let look = move || views::look_at_handoff(&home, &host, &id, ANSWER_WITHIN);
        HandoffLooks::every(EVERY, look)
    }

    fn every(every: Duration, look: impl Fn() -> Looked + Send + 'static) -> std::io::Result<HandoffLooks> {
        let (to, answers) = mpsc::sync_channel(1);
        let (again, asked) = mpsc::sync_channel(1);
        let work = move || {
            loop {
                let began = Instant::now();
                if to.send(look()).is_err() {
                    return;
                }
                std::thread::sleep(every.saturating_sub(began.elapsed()));
                if let Err(RecvTimeoutError::Disconnected) = asked.recv_timeout(AT_LEAST_EVERY) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("looks".to_owned()).spawn(work)?;
        Ok(HandoffLooks { answers, again })
    }

    /// The answer that has come since the last call.
    pub(super) fn answer(&self) -> Option<Looked> {
        self.answers.try_recv().ok()
    }

    /// Asks the host again, as soon as [`EVERY`] allows.
    pub(super) fn again(&self) {
        // If a question is already waiting, that is enough.
        let _ = self.again.try_send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::HandoffView;
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_host_is_asked_when_there_is_news_but_not_more_often_than_is_allowed() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let every = Duration::from_millis(300);
        let looks = HandoffLooks::every(every, move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(json!(HandoffView::default()).into())
        });
        let (looks, began) = (looks.expect("a thread"), Instant::now());
        let mut answers = 0;
        while answers < 3 {
            assert!(began.elapsed() < Duration::from_secs(30), "{answers} answers");
            looks.again();
            answers += usize::from(looks.answer().is_some());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(began.elapsed() >= 2 * every, "{:?}", began.elapsed());
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }
}
