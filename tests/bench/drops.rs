//! Dropping requests as any writer does, and seeing results as any reader may.

use crate::place::{PATIENCE, wait_until};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// A request that is read, looked up, decided, committed and answered, and does nothing else: it names an error that
/// nobody knows.
pub(crate) const REQUEST: &[u8] =
    br#"{"v":1,"kind":"error_dismiss","error_id":"6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa"}"#;

/// Writes the file where nobody looks.
pub(crate) fn prepare(home: &Path, id: &str) {
    prepare_this(home, id, REQUEST);
}

/// The same with a request of one's own.
pub(crate) fn prepare_this(home: &Path, id: &str, request: &[u8]) {
    fs::write(home.join(format!("spool/tmp/{id}.json")), request).expect("written");
}

/// Makes it visible by a rename.
pub(crate) fn show(home: &Path, id: &str) {
    let (from, to) = (format!("spool/tmp/{id}.json"), format!("spool/requests/{id}.json"));
    fs::rename(home.join(from), home.join(to)).expect("renamed");
}

/// Drops one request and waits for its result; how long that took from the rename on.
pub(crate) fn round_trip(home: &Path, results: &Arrivals, id: &str) -> Duration {
    round_trip_of(home, results, id, REQUEST)
}

/// The same with a request of one's own.
pub(crate) fn round_trip_of(home: &Path, results: &Arrivals, id: &str, request: &[u8]) -> Duration {
    prepare_this(home, id, request);
    let began = Instant::now();
    show(home, id);
    results.wait_for(1);
    began.elapsed()
}

/// Drops an event, as a hook does.
pub(crate) fn drop_event(home: &Path, name: &str, event: &str) {
    let scratch = home.join(format!("spool/tmp/{name}.json"));
    fs::write(&scratch, event).expect("written");
    fs::rename(scratch, home.join(format!("spool/events/{name}.json"))).expect("renamed");
}

/// Lets so many agents come, each by its event, and waits until all of them have a view.
pub(crate) fn register(home: &Path, agents: usize, event: impl Fn(usize) -> String) {
    (0..agents).for_each(|number| drop_event(home, &format!("agent-{number}"), &event(number)));
    wait_until("all agents are registered", Duration::from_millis(50), || {
        fs::read_dir(home.join("view/agents")).map_or(0, Iterator::count) >= agents
    });
}

/// Counts files that are renamed into a folder.
pub(crate) struct Arrivals {
    inotify: Inotify,
}

impl Arrivals {
    /// From now on.
    pub(crate) fn into_folder(folder: &Path) -> Arrivals {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).expect("inotify");
        inotify.add_watch(folder, AddWatchFlags::IN_MOVED_TO).expect("a watch");
        Arrivals { inotify }
    }

    /// Waits for so many.
    pub(crate) fn wait_for(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        let mut seen = 0;
        while seen < count {
            assert!(Instant::now() < until, "only {seen} of {count} came");
            seen += self.some(PATIENCE);
        }
    }

    /// Waits for the next ones, at most so long; how many there were.
    pub(crate) fn some(&self, wait: Duration) -> usize {
        let millis = PollTimeout::try_from(wait).expect("a short time");
        let mut fds = [PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN)];
        // An interrupted wait is as good as one that is over.
        let _ = poll(&mut fds, millis);
        let events = self.inotify.read_events().unwrap_or_default();
        assert!(!events.iter().any(|event| event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW)), "no notice is lost");
        events.len()
    }
}
