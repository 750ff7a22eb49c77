//! Looks at a handoff on another host by its whole view, again and again, beside the wait that shows it: at once, when the
//! host's roster shows a change, and else every 15 s. The view has each step; a roster has only the present one.

use super::views;
use crate::cli::error::CliError;
use crate::cli::view::ViewFile;
use crate::config::Home;
use crate::contract::HandoffView;
use crate::core::host::HostName;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// How often the host is asked at most.
const EVERY: Duration = Duration::from_secs(2);
/// How often it is asked while its roster shows no change.
const AT_LEAST_EVERY: Duration = Duration::from_secs(15);
/// How long one answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What an answer says.
pub(super) type Looked = Result<ViewFile<HandoffView>, CliError>;

/// The looks, in a thread of their own, until this is dropped. One question is open at a time.
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

    /// Has the host asked again as soon as that may be.
    pub(super) fn again(&self) {
        // A question that waits already is enough.
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
    fn a_host_is_asked_when_there_is_news_but_not_more_often_than_it_may_be() {
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
