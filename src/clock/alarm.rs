//! The alarm that ends the loop's sleep. tokio's own timers are made for many short waits: a wait of 5 s also wakes the
//! machine every 4 s, to sort the timer wheel, and time in which the machine sleeps does not count. Linux has a timer
//! that wakes the machine only at its end and counts that time, so the alarm uses that one.

use std::time::Duration;

/// An alarm that rings after a given time. On Linux, time in which the machine sleeps counts.
#[derive(Debug)]
pub struct Alarm {
    #[cfg(all(target_os = "linux", not(tasuki_portable)))]
    timer: Option<timer::Timer>,
}

impl Alarm {
    /// An alarm that is not set. Must be called within a tokio runtime. If the system gives no timer, the alarm uses
    /// the runtime's, for which the machine's sleep does not count.
    #[must_use]
    pub fn new() -> Alarm {
        Alarm {
            #[cfg(all(target_os = "linux", not(tasuki_portable)))]
            timer: timer::Timer::new().ok(),
        }
    }

    /// Returns after this time. Even if the time is zero, it lets other tasks run. The future may be dropped half-way:
    /// the next call counts from the beginning.
    pub async fn ring_after(&mut self, wait: Duration) {
        if wait.is_zero() {
            return tokio::task::yield_now().await;
        }
        #[cfg(all(target_os = "linux", not(tasuki_portable)))]
        if let Some(timer) = &self.timer
            && timer.expire_after(wait).await.is_ok()
        {
            return;
        }
        tokio::time::sleep(wait).await;
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm::new()
    }
}

#[cfg(all(target_os = "linux", not(tasuki_portable)))]
mod timer {
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::time::Duration;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(super) struct Timer {
        timer: TimerFd,
        /// A copy of the timer's descriptor, by which the runtime waits for it.
        ready: AsyncFd<OwnedFd>,
    }

    impl Timer {
        #[allow(unsafe_code)]
        pub(super) fn new() -> io::Result<Timer> {
            let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
            let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?;
            let fd = timer.as_fd().try_clone_to_owned()?;
            // SAFETY: an `OwnedFd` keeps one and the same open descriptor until it is dropped.
            let ready = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
            Ok(Timer { timer, ready })
        }

        pub(super) async fn expire_after(&self, wait: Duration) -> io::Result<()> {
            // Setting it again forgets an expiry that nobody has read.
            self.timer.set(Expiration::OneShot(wait.into()), TimerSetTimeFlags::empty())?;
            loop {
                let mut guard = self.ready.readable().await?;
                if let Ok(expired) = guard.try_io(|_| Ok(self.timer.wait()?)) {
                    return expired;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn an_alarm_rings_when_the_time_is_over_and_not_before() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            for wait in [Duration::from_millis(30), Duration::ZERO, Duration::from_micros(1)] {
                let began = Instant::now();
                alarm.ring_after(wait).await;
                assert!(began.elapsed() >= wait, "{wait:?}");
            }
        });
    }

    #[test]
    fn an_alarm_that_was_dropped_does_not_ring_in_the_next_wait() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            let dropped = tokio::time::timeout(Duration::from_millis(1), alarm.ring_after(Duration::from_millis(20)));
            assert!(dropped.await.is_err());
            std::thread::sleep(Duration::from_millis(30));
            let began = Instant::now();
            alarm.ring_after(Duration::from_millis(50)).await;
            assert!(began.elapsed() >= Duration::from_millis(50));
        });
    }
}
