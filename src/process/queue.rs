//! Waits for the ends of processes through the kernel queue of macOS. One queue and one thread serve the whole program:
//! a descriptor for each process would soon be more than macOS allows us (256 unless somebody has raised the limit).

use super::waiters::ExitWaiters;
use nix::errno::Errno;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The largest number of ends that are taken from the queue at once.
const AT_ONCE: usize = 64;

/// The queue of this program; none before its first use, and after it has failed.
static QUEUE: Mutex<Option<Arc<ExitQueue>>> = Mutex::new(None);

#[derive(Debug)]
struct ExitQueue {
    kernel: Kqueue,
    waiters: Mutex<ExitWaiters>,
}

/// A process whose end the kernel will report. Dropping this value ends the wait.
#[derive(Debug)]
pub(super) struct AwaitedExit {
    queue: Arc<ExitQueue>,
    pid: u32,
    ticket: u64,
    told: oneshot::Receiver<()>,
}

/// Asks the kernel to report the end of the process that has this id now.
///
/// # Errors
/// `ESRCH` if the process has ended, also if it is a zombie. Any other error: no queue or thread can be made at the
/// moment.
pub(super) fn await_exit(pid: u32) -> io::Result<AwaitedExit> {
    let queue = queue()?;
    let mut waiters = queue.waiters.lock().unwrap_or_else(PoisonError::into_inner);
    let (ticket, told) = waiters.add(pid);
    // The task is in the list before the kernel is asked, so the thread can't receive the end and find nobody to tell.
    let armed = queue.change(pid, EvFlags::EV_ADD | EvFlags::EV_ONESHOT);
    if armed.is_err() {
        waiters.remove(pid, ticket);
    }
    drop(waiters);
    armed?;
    Ok(AwaitedExit { queue, pid, ticket, told })
}

impl AwaitedExit {
    /// Returns when the process has ended, or when the queue has failed. The caller must look at the process again.
    pub(super) async fn told(mut self) {
        // An error means that the sender is gone. The caller looks at the process in both cases.
        let _ = (&mut self.told).await;
    }
}

impl Drop for AwaitedExit {
    fn drop(&mut self) {
        let mut waiters = self.queue.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        if waiters.remove(self.pid, self.ticket) {
            // This fails if the process has just ended.
            let _ = self.queue.change(self.pid, EvFlags::EV_DELETE);
        }
    }
}

impl ExitQueue {
    fn change(&self, pid: u32, flags: EvFlags) -> io::Result<()> {
        let ident = usize::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let change = KEvent::new(ident, EventFilter::EVFILT_PROC, flags, FilterFlag::NOTE_EXIT, 0, 0);
        self.kernel.kevent(&[change], &mut [], None)?;
        Ok(())
    }

    /// Takes ends from the queue for ever; returns only if the queue fails.
    fn listen(&self) -> Errno {
        let empty = KEvent::new(0, EventFilter::EVFILT_PROC, EvFlags::empty(), FilterFlag::empty(), 0, 0);
        let mut ends = [empty; AT_ONCE];
        loop {
            match self.kernel.kevent(&[], &mut ends, None) {
                Ok(number) => {
                    let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
                    let pids = ends.iter().take(number).filter_map(|end| u32::try_from(end.ident()).ok());
                    pids.for_each(|pid| waiters.tell(pid));
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return errno,
            }
        }
    }
}

/// The queue of this program, made at its first use.
fn queue() -> io::Result<Arc<ExitQueue>> {
    let mut kept = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(queue) = &*kept {
        return Ok(Arc::clone(queue));
    }
    let queue = Arc::new(ExitQueue { kernel: Kqueue::new()?, waiters: Mutex::default() });
    let heard = Arc::clone(&queue);
    std::thread::Builder::new().name("exits".to_owned()).spawn(move || {
        let errno = heard.listen();
        tracing::warn!(%errno, "the kernel's queue of ended processes has failed; tasuki makes another");
        *QUEUE.lock().unwrap_or_else(PoisonError::into_inner) = None;
        heard.waiters.lock().unwrap_or_else(PoisonError::into_inner).tell_all();
    })?;
    *kept = Some(Arc::clone(&queue));
    Ok(queue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[tokio::test]
    async fn the_kernel_tells_all_waiting_tasks_of_an_end_and_refuses_a_process_that_has_ended() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere");
        let (one, other) = (await_exit(child.id()).expect("it runs"), await_exit(child.id()).expect("it runs"));
        drop(await_exit(child.id()).expect("it runs"));
        child.kill().expect("our own child");
        for exit in [one, other] {
            tokio::time::timeout(Duration::from_secs(10), exit.told()).await.expect("it was killed");
        }
        child.wait().expect("our own child");
        assert_eq!(await_exit(child.id()).expect_err("it is gone").raw_os_error(), Some(Errno::ESRCH as i32));
    }
}
