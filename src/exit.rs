//! The exit codes of every command, in one place, since scripts rely on them; and the exit after a panic.

/// The command did what it was asked.
pub const DONE: u8 = 0;
/// The request was refused, or failed.
pub const REFUSED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// `status`: something waits for a person.
pub const NEEDS_YOU: u8 = 10;
/// No sidecar answers.
pub const UNAVAILABLE: u8 = 69;
/// A fault of our own has ended it. Service managers start the program again.
pub const FAULT: u8 = 70;
/// Not now: try again later.
pub const TRY_AGAIN: u8 = 75;
/// The user, or a file's permissions, do not allow it.
pub const NOT_ALLOWED: u8 = 77;
/// The configuration or the state is not usable; a restart does not help.
pub const CONFIG: u8 = 78;
/// A signal has ended the wait. It is the code that a shell reports for Ctrl-C: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// From here on a panic in any thread or task ends the whole process with [`FAULT`], after `say`. Where `is_minded`
/// says that somebody waits for the panicking task and reports its failure, the panic is only logged. A panic's message
/// may contain a text that must stay private, so only its place is reported.
pub fn end_on_fault(is_minded: fn() -> bool, say: fn(&str)) {
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        if is_minded() {
            return tracing::error!(place, "an internal error");
        }
        let thread = std::thread::current();
        say(&format!("Internal error at {place} in thread {}: the program was ended.", thread.name().unwrap_or("?")));
        std::process::exit(i32::from(FAULT));
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Set in the process that is to have the fault.
    const HAS_FAULT: &str = "TASUKI_TEST_FAULT";

    #[test]
    fn a_fault_in_any_thread_ends_the_process_so_that_a_service_manager_starts_it_again() {
        if std::env::var_os(HAS_FAULT).is_some() {
            end_on_fault(|| false, |said| eprintln!("{said}"));
            let side = std::thread::Builder::new().name("side".to_owned());
            let fault = side.spawn(|| panic!("a text that is nobody's business")).expect("a thread");
            // The main thread does not mind, as a loop would not.
            let (_open, never) = mpsc::channel::<()>();
            let _ = never.recv_timeout(Duration::from_secs(60));
            return drop(fault);
        }
        let own = "exit::tests::a_fault_in_any_thread_ends_the_process_so_that_a_service_manager_starts_it_again";
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let output = command.args(["--exact", own, "--nocapture"]).env(HAS_FAULT, "1").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(i32::from(FAULT)), "{said}");
        assert!(said.contains("Internal error at src/exit.rs:") && said.contains("in thread side"), "{said}");
        assert!(!said.contains("business"), "{said}");
        let unit = include_str!("../packaging/systemd/tasuki.service");
        let never = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).expect("it says so");
        assert!(unit.contains("\nRestart=on-failure\n") && never.split(' ').all(|code| code != FAULT.to_string()));
    }
}
