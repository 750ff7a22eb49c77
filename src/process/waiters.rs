//! The tasks that wait for the ends of processes, on a system where one thread receives all reports.

use std::collections::HashMap;
use tokio::sync::oneshot;

/// The waiting tasks by process id. A task is told at most once, and must then look again itself: the id may have been
/// given to another process meanwhile.
#[derive(Debug, Default)]
pub(super) struct ExitWaiters {
    tickets: u64,
    waiting: HashMap<u32, Vec<(u64, oneshot::Sender<()>)>>,
}

impl ExitWaiters {
    /// Adds a task that waits for a process. Returns its ticket, and the receiver by which it is told.
    pub(super) fn add(&mut self, pid: u32) -> (u64, oneshot::Receiver<()>) {
        let (sender, told) = oneshot::channel();
        self.tickets += 1;
        self.waiting.entry(pid).or_default().push((self.tickets, sender));
        (self.tickets, told)
    }

    /// Removes a task that waits no longer. Returns whether it was the last task that waited for this process, so that
    /// the kernel need not watch the process any more. `false` for a task that was already told.
    pub(super) fn remove(&mut self, pid: u32, ticket: u64) -> bool {
        let Some(waiting) = self.waiting.get_mut(&pid) else { return false };
        waiting.retain(|(other, _)| *other != ticket);
        if !waiting.is_empty() {
            return false;
        }
        self.waiting.remove(&pid);
        true
    }

    /// Tells all tasks that wait for a process.
    pub(super) fn tell(&mut self, pid: u32) {
        for (_, waiting) in self.waiting.remove(&pid).into_iter().flatten() {
            // This fails if the task has just gone.
            let _ = waiting.send(());
        }
    }

    /// Tells all tasks, because no report will come any more.
    pub(super) fn tell_all(&mut self) {
        let pids: Vec<u32> = self.waiting.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.tell(pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tasks_that_wait_for_a_process_are_told_once_and_no_other_task_is() {
        let mut waiters = ExitWaiters::default();
        let (one, mut first) = waiters.add(7);
        let (_, mut second) = waiters.add(7);
        let (_, mut other) = waiters.add(8);
        waiters.tell(7);
        assert_eq!((first.try_recv(), second.try_recv()), (Ok(()), Ok(())));
        assert_eq!(other.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert!(!waiters.remove(7, one), "it is watched no longer");
        // The id is given to another process. The old ticket must not end the wait for that process.
        let (_, mut later) = waiters.add(7);
        assert!(!waiters.remove(7, one));
        assert_eq!(later.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        waiters.tell_all();
        assert_eq!((later.try_recv(), other.try_recv()), (Ok(()), Ok(())));
        assert!(waiters.waiting.is_empty());
    }

    #[test]
    fn only_the_last_task_that_leaves_ends_the_watch() {
        let mut waiters = ExitWaiters::default();
        let (one, _first) = waiters.add(7);
        let (two, mut second) = waiters.add(7);
        assert!(!waiters.remove(7, one));
        assert!(!waiters.remove(7, one), "it has left already");
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert!(waiters.remove(7, two));
        assert!(waiters.waiting.is_empty());
    }
}
