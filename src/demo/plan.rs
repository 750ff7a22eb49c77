//! Plans a turn as a list of timed acts, faults included; `turns` carries them out. Planning changes nothing, and reads
//! nothing but the checkpoint of a document, for an ACK.

use super::acknowledge::{self, AckAction};
use super::faults::Faults;
use super::flaws::with_flaw;
use super::model::{Memory, Task, is_delivered, is_rework};
use super::work;
use std::path::{Path, PathBuf};

/// One act of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Wait for that many milliseconds before the next act.
    Wait(u64),
    Say(String),
    Reply(Vec<String>),
    /// Open a permission dialog and wait until it is answered.
    Dialog(String),
    Create(PathBuf, Vec<u8>),
    /// Write more at the end of a file.
    Append(PathBuf, Vec<u8>),
    Folder(PathBuf),
    /// Create a symbolic link: where, and to what.
    Link(PathBuf, PathBuf),
    Read(PathBuf),
    /// List the folder that the agent works in.
    Look,
    /// Acknowledge the handoff, as the prompt says.
    Acknowledge(Vec<AckAction>),
    Run(Vec<String>),
    /// Run a second agent with the same environment.
    Nested,
    Clear,
    /// Report a Stop. `background` means that a task still runs in the background, and that the turn continues.
    Stop {
        background: bool,
    },
    /// Report a Stop without background tasks, although the turn continues.
    EarlyStop,
    /// Report a failure, and end the turn.
    Fail(String),
    /// End the turn without any event.
    Interrupt,
    Die,
}

/// How long a turn takes, in milliseconds.
const TURN_MS: u64 = 600;
/// How long a turn continues after its first Stop until the document is written, in milliseconds.
const CONTINUES_MS: u64 = 4_000;

/// Plans the turn that answers a prompt. `memory` already holds the prompt, unless the prompt asks for a document.
#[must_use]
pub fn turn(prompt: &str, task: &Task, memory: &Memory, faults: &Faults) -> Vec<Act> {
    let length = faults.number("slow_turn").unwrap_or(TURN_MS);
    let mut acts = Vec::new();
    if faults.has("end_by_clear") {
        acts.push(Act::Clear);
    }
    acts.push(Act::Wait(length / 2));
    if faults.has("nested") {
        acts.push(Act::Nested);
    }
    let priming = *task == Task::Answer && is_delivered(prompt);
    if faults.has("fail_turn") || (priming && faults.has("fail_priming")) {
        acts.extend([Act::Wait(length / 2), Act::Fail("API error: 529 overloaded".into())]);
        return acts;
    }
    if let Some(until) = faults.text("usage_limit") {
        let said = format!("Usage limit reached; it resets at {until}");
        acts.extend([Act::Wait(length / 2), Act::Fail(said)]);
        return acts;
    }
    if faults.has("interrupt") {
        acts.extend([Act::Wait(length / 2), Act::Interrupt]);
        return acts;
    }
    match task {
        Task::Write(path) => acts.extend(write(path, &document(prompt, memory, faults), length / 4, faults)),
        Task::Read(path) => {
            if faults.has("dialog_on_read") {
                acts.push(Act::Dialog("read the document of the predecessor".into()));
            }
            acts.extend([Act::Read(path.clone()), Act::Wait(length / 2), stop()]);
        }
        Task::Work(work) => {
            acts.extend(work::commands(work, faults).into_iter().map(Act::Run));
            acts.extend([Act::Wait(length / 2), Act::Say(memory.answer(prompt)), stop()]);
        }
        Task::Reply => {
            let blocks = if faults.has("empty_answer") { Vec::new() } else { memory.reply(prompt) };
            acts.extend([Act::Wait(length / 2), Act::Reply(blocks), stop()]);
        }
        Task::Answer | Task::Follow(_) => acts.extend([Act::Wait(length / 2), Act::Say(memory.answer(prompt)), stop()]),
    }
    acknowledge(&mut acts, prompt, task, faults);
    end(acts, faults)
}

/// The document that the agent writes. With the fault `flaw`, it has a flaw, until the agent is asked to repair it;
/// with `flaw_stays`, it has the flaw even then.
fn document(prompt: &str, memory: &Memory, faults: &Faults) -> String {
    let document = memory.document(prompt);
    match faults.text("flaw").filter(|_| !is_rework(prompt) || faults.has("flaw_stays")) {
        Some(flaw) => with_flaw(&document, flaw, memory.predecessor.as_deref()),
        None => document,
    }
}

/// Adds the acknowledgement just before the Stop, or with the fault `ack_late` after it.
fn acknowledge(acts: &mut Vec<Act>, prompt: &str, task: &Task, faults: &Faults) {
    let Some(asked) = acknowledge::asked(prompt) else { return };
    let document = if let Task::Read(path) = task { Some(path.as_path()) } else { None };
    let actions = acknowledge::actions(prompt, &asked, document, faults);
    match faults.number("ack_late") {
        Some(late) => acts.extend([Act::Wait(late), Act::Acknowledge(actions)]),
        None => acts.insert(acts.len().saturating_sub(1), Act::Acknowledge(actions)),
    }
}

fn stop() -> Act {
    Act::Stop { background: false }
}

/// The acts of writing a document. Without faults, it is written in two parts with a pause between, as by a slow tool.
fn write(path: &Path, document: &str, pause: u64, faults: &Faults) -> Vec<Act> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let done = Act::Say(format!("I have written my handoff document {name}."));
    let dialog = faults.has("dialog_on_write").then(|| Act::Dialog(format!("write {name}")));
    let whole = Act::Create(path.to_owned(), document.as_bytes().to_vec());
    let half = (0..=document.len() / 2).rev().find(|at| document.is_char_boundary(*at)).unwrap_or(0);
    let (first, rest) = document.split_at(half);
    let first = Act::Create(path.to_owned(), first.as_bytes().to_vec());
    let rest = Act::Append(path.to_owned(), rest.as_bytes().to_vec());
    let instead =
        |content: &[u8]| vec![Act::Create(path.to_owned(), content.to_vec()), Act::Wait(pause), done.clone(), stop()];
    let mut acts = vec![Act::Look];
    acts.extend(dialog);
    acts.extend(if faults.dies_at("write") {
        vec![first, Act::Die]
    } else if faults.has("write_never") {
        vec![Act::Wait(pause), done, stop()]
    } else if faults.has("stop_before_writing") {
        vec![done, stop(), Act::Wait(100), whole]
    } else if let Some(late) = faults.number("write_late") {
        vec![done, stop(), Act::Wait(late), whole]
    } else if faults.has("write_half") {
        vec![first, done, stop(), Act::Wait(300), rest]
    } else if faults.has("write_empty") {
        instead(b"")
    } else if faults.has("write_space") {
        instead(b" \n\t\n")
    } else if faults.has("write_binary") {
        instead(b"\xff\xfe\x00\x01")
    } else if faults.has("write_dir") {
        vec![Act::Folder(path.to_owned()), done, stop()]
    } else if faults.has("write_link") {
        let target = path.with_extension("target");
        let real = Act::Create(target.clone(), document.as_bytes().to_vec());
        vec![real, Act::Link(path.to_owned(), target), done, stop()]
    } else if faults.has("stop_early") {
        vec![Act::EarlyStop, Act::Wait(CONTINUES_MS), whole, Act::Wait(pause), done, stop()]
    } else if faults.has("background") {
        vec![Act::Stop { background: true }, Act::Wait(500), whole, Act::Wait(pause), done, stop()]
    } else {
        vec![first, Act::Wait(pause), rest, Act::Wait(pause), done, stop()]
    });
    acts
}

/// Applies the faults that concern the Stop itself.
fn end(acts: Vec<Act>, faults: &Faults) -> Vec<Act> {
    let waits_in_background = acts.contains(&Act::Stop { background: true });
    acts.into_iter()
        .flat_map(|act| match act {
            Act::Stop { background: false } if faults.dies_at("stop") => vec![Act::Die],
            Act::Stop { background: false } if faults.has("never_stops") => vec![Act::Wait(u64::MAX)],
            Act::Stop { background: false } if faults.has("stop_twice") => vec![stop(), stop()],
            Act::Stop { background: false } if faults.has("background") && !waits_in_background => {
                vec![Act::Stop { background: true }, Act::Wait(500), stop()]
            }
            act => vec![act],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(faults: &str) -> Vec<Act> {
        let task = Task::Write("/h/x.md".into());
        turn("Write it to `/h/x.md`.", &task, &Memory::default(), &Faults::parse(faults))
    }

    fn place(acts: &[Act], is: impl Fn(&Act) -> bool) -> usize {
        acts.iter().position(is).unwrap_or(usize::MAX)
    }

    fn is_stop(act: &Act) -> bool {
        matches!(act, Act::Stop { background: false })
    }

    fn content(acts: &[Act]) -> Vec<u8> {
        let parts = acts.iter().filter_map(|act| match act {
            Act::Create(_, bytes) | Act::Append(_, bytes) => Some(bytes.clone()),
            _ => None,
        });
        parts.collect::<Vec<_>>().concat()
    }

    #[test]
    fn without_faults_the_document_is_whole_before_the_stop() {
        let acts = written("");
        assert!(place(&acts, |act| matches!(act, Act::Append(..))) < place(&acts, is_stop));
        assert_eq!(content(&acts), Memory::default().document("").into_bytes());
        assert_eq!(acts.iter().filter(|act| is_stop(act)).count(), 1);
    }

    #[test]
    fn late_writers_stop_first() {
        for fault in ["stop_before_writing", "write_late=900"] {
            let acts = written(fault);
            assert!(place(&acts, is_stop) < place(&acts, |act| matches!(act, Act::Create(..))), "{fault}");
        }
        let half = written("write_half");
        let stop = place(&half, is_stop);
        assert!(place(&half, |act| matches!(act, Act::Create(..))) < stop);
        assert!(stop < place(&half, |act| matches!(act, Act::Append(..))));
    }

    #[test]
    fn turns_that_go_wrong_do_not_stop() {
        for fault in ["fail_turn", "interrupt", "never_stops", "die_at=stop", "die_at=write"] {
            assert!(!written(fault).iter().any(is_stop), "{fault}");
        }
        let answer = |prompt: &str| turn(prompt, &Task::Answer, &Memory::default(), &Faults::parse("fail_priming"));
        assert!(answer("hello").iter().any(is_stop));
        assert!(!answer("skill\n(tasuki delivery 5f2a9c81d0e3.)").iter().any(is_stop));
    }

    #[test]
    fn a_stop_can_come_twice_or_after_a_stop_with_background_tasks() {
        assert_eq!(written("stop_twice").iter().filter(|act| is_stop(act)).count(), 2);
        let acts = written("background");
        assert!(
            place(&acts, |act| *act == Act::Stop { background: true })
                < place(&acts, |act| matches!(act, Act::Create(..)))
        );
        assert!(is_stop(acts.last().expect("acts")));
    }
}
