//! How the demo agent misbehaves when it is told to: by `TASUKI_DEMO_FAULTS="a,b=value,…"`, or by the file that
//! `TASUKI_DEMO_FAULTS_FILE` names. If the file can be read, the variable's list does not count. The agent reads the
//! file again at each Enter and at each paste. Each line of the file is such a list. A line that begins with `who:` is
//! only for agents of the persona `who`, and for agents whose id begins with `who` (at least 4 characters).
//!
//! | fault | what happens |
//! |---|---|
//! | `swallow_enter=N` | the first N Enters do nothing |
//! | `start_slow=MS` | the composer comes MS later; what is typed before is lost |
//! | `slow_paste=MS` | a paste is taken MS later, and until then nothing is drawn |
//! | `lazy_start` | SessionStart is reported only with the first prompt |
//! | `dialog` | a permission dialog is open at the start |
//! | `dialog_on_write` | a permission dialog comes before the document is written, and stays until a key is pressed |
//! | `dialog_on_read` | a permission dialog comes before a predecessor's document is read |
//! | `draft=TEXT` | a half-typed TEXT is in the composer at the start |
//! | `stop_before_writing` | Stop comes first, the document 100 ms later |
//! | `write_late=MS` | the document comes MS after the Stop |
//! | `write_half` | half of the document, Stop, 300 ms later the rest |
//! | `write_empty`, `write_space` | the document is empty, or white space alone |
//! | `write_link`, `write_dir` | in the document's place is a link to the document, or a folder |
//! | `write_binary` | the document is not UTF-8 |
//! | `flaw=WORD` | the document has a flaw: `headings` (no text below them), `claims` (false ones), `missing_file`, `fence`, `secrets`, `copy`, `no_checkpoint`, `long` |
//! | `flaw_stays` | the document keeps its flaw when the agent is asked to repair it |
//! | `write_never` | no document, but a normal Stop |
//! | `never_stops` | the document is written, and the turn never ends |
//! | `fail_turn` | each turn ends with StopFailure, and nothing is written |
//! | `usage_limit=SECONDS` | each turn ends with StopFailure, which reports a usage limit; the limit ends at this time, in seconds since 1970 |
//! | `fail_priming` | StopFailure ends the turn of a priming, or of another typed text without document or work item |
//! | `ignore_exit` | `/exit` says goodbye, and nothing else happens |
//! | `linger=MS` | the process lives on for MS after SessionEnd |
//! | `die_at=STEP` | SIGKILL to itself: `start`, `prompt` (before its receipt), `turn` (after it), `write`, `stop` (before it), `stopped` (after it), `exit` |
//! | `merge=TEXT` | somebody types TEXT in front of a prompt at the last moment |
//! | `drop_prompt` | a prompt is reported and then dropped: no turn follows, and the transcript does not have it |
//! | `cut` | the hook is told only the second half of a prompt |
//! | `in_shell` | the agent runs in a shell, which lives on when the agent has ended |
//! | `collapse` | a paste of 4 lines or more, or of more than 800 characters, shows as `[Pasted text #1 +N lines]` |
//! | `wrap` | the prompt in the hook is wrapped in `<pasted_content …>` |
//! | `queue` | a prompt of the user's own is submitted just before another prompt, so that this one is queued |
//! | `nested` | in each turn a second agent runs with the same environment and another session id |
//! | `stop_twice` | each Stop comes twice |
//! | `stop_early` | a Stop comes before the document is written, and the turn continues, as if a Stop hook of the user's own had asked for more |
//! | `end_by_clear` | each turn begins with a `/clear`: SessionEnd, SessionStart, another session id |
//! | `interrupt` | each turn ends without any event, and nothing is written |
//! | `hooks_off` | no hooks at all |
//! | `hooks_twice` | each hook runs twice, as if hooks were installed in two places |
//! | `slow_hooks=MS` | hooks run MS later, after the turn has moved on |
//! | `no_bracket` | bracketed paste is never switched on |
//! | `ghost` | ghost text is drawn in an odd way: bright black, its first letter under a reversed cursor |
//! | `slow_turn=MS` | a turn takes MS instead of 600 |
//! | `transcript_lag=MS` | lines of the transcript are written MS late, so after the Stop |
//! | `split_blocks` | in the transcript, each block of an answer is a line of its own, with other lines between |
//! | `no_transcript` | the transcript that the hooks name is never written |
//! | `tokens=N` | the transcript says that N tokens of the context are used |
//! | `empty_answer` | an answer that should be the document has no text |
//! | `lazy_clear` | `/clear` reports nothing until the next prompt, and then only the new session |
//! | `ack_never` | a handoff is never acknowledged |
//! | `ack_on_reminder` | a handoff is acknowledged only when a reminder comes |
//! | `ack_late=MS` | a handoff is acknowledged MS after the Stop |
//! | `ack_malformed` | the first ACK is a file that does not have the right form |
//! | `ack_questions` | the first ACK has a question |
//! | `ack_reject`, `ack_environment` | the ACK rejects the task, or says that the environment can't be set up |
//! | `ack_other=ID` | the ACK names another handoff |
//! | `ack_twice` | the same ACK is sent twice |
//! | `ack_file` | the ACK is a file; the command is not run |
//! | `work=WORD` | a work item is not claimed and completed as usual: `ignore`, `claim` (only claimed), `release`, `escalate`, `bad_output`, `partial` (three of five children are bad) |
//! | `background` | a Stop with background tasks comes first; then the document, then the real Stop |

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

const NAMES: [&str; 62] = [
    "work",
    "swallow_enter",
    "start_slow",
    "slow_paste",
    "lazy_start",
    "dialog",
    "dialog_on_write",
    "dialog_on_read",
    "draft",
    "stop_before_writing",
    "write_late",
    "write_half",
    "write_empty",
    "write_space",
    "write_link",
    "write_dir",
    "write_binary",
    "write_never",
    "flaw",
    "flaw_stays",
    "never_stops",
    "fail_turn",
    "usage_limit",
    "fail_priming",
    "ignore_exit",
    "linger",
    "die_at",
    "merge",
    "cut",
    "drop_prompt",
    "in_shell",
    "collapse",
    "wrap",
    "queue",
    "nested",
    "stop_twice",
    "stop_early",
    "end_by_clear",
    "interrupt",
    "hooks_off",
    "hooks_twice",
    "slow_hooks",
    "no_bracket",
    "ghost",
    "slow_turn",
    "background",
    "transcript_lag",
    "split_blocks",
    "no_transcript",
    "tokens",
    "empty_answer",
    "lazy_clear",
    "ack_never",
    "ack_on_reminder",
    "ack_late",
    "ack_malformed",
    "ack_questions",
    "ack_reject",
    "ack_environment",
    "ack_other",
    "ack_twice",
    "ack_file",
];

const MAX_FILE: u64 = 64 * 1024;

/// The faults that are switched on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    set: BTreeMap<String, String>,
    /// Names that are not faults. The agent shows them on its screen, because with a typo in the name of a fault a test
    /// might pass without testing anything.
    pub unknown: Vec<String>,
}

impl Faults {
    /// Reads a list such as `write_late=300,nested`.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        let mut faults = Faults::default();
        faults.add(list);
        faults
    }

    fn add(&mut self, list: &str) {
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if NAMES.contains(&name) {
                self.set.insert(name.to_owned(), value.to_owned());
            } else {
                self.unknown.push(name.to_owned());
            }
        }
    }

    /// Reads a fault file's lines, as far as they are meant for that agent.
    #[must_use]
    pub fn parse_file(text: &str, persona: &str, agent_id: &str) -> Self {
        let mut faults = Faults::default();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            match line.split_once(':') {
                Some((who, list)) if !who.contains([',', '=']) => {
                    let who = who.trim();
                    if who == persona || (who.len() >= 4 && agent_id.starts_with(who)) {
                        faults.add(list);
                    }
                }
                _ => faults.add(line),
            }
        }
        faults
    }

    /// Whether the fault of that name is switched on.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.set.contains_key(name)
    }

    /// A fault's value, if the fault is switched on.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.set.get(name).map(String::as_str)
    }

    /// A fault's value as a number, if the fault is switched on; a value that is not a number counts as 0.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name).map(|value| value.parse().unwrap_or(0))
    }

    /// Whether the process is to die at that step.
    #[must_use]
    pub fn dies_at(&self, step: &str) -> bool {
        self.text("die_at") == Some(step)
    }
}

/// Where the list of faults is read from.
#[derive(Debug, Clone, Default)]
pub struct FaultSource {
    list: String,
    file: Option<PathBuf>,
    persona: String,
    agent_id: String,
}

impl FaultSource {
    /// The source that the environment names.
    #[must_use]
    pub fn from_env() -> Self {
        let text = |name| std::env::var(name).unwrap_or_default();
        FaultSource {
            list: text("TASUKI_DEMO_FAULTS"),
            file: std::env::var_os("TASUKI_DEMO_FAULTS_FILE").filter(|path| !path.is_empty()).map(PathBuf::from),
            persona: text("TASUKI_PERSONA"),
            agent_id: text("TASUKI_AGENT_ID"),
        }
    }

    /// The faults that are switched on at this moment: those of the file if it can be read, else those of the variable.
    #[must_use]
    pub fn read(&self) -> Faults {
        let mut text = String::new();
        let file = self.file.as_ref().and_then(|path| File::open(path).ok());
        match file.map(|file| file.take(MAX_FILE).read_to_string(&mut text)) {
            Some(Ok(_)) => Faults::parse_file(&text, &self.persona, &self.agent_id),
            _ => Faults::parse(&self.list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_faults_with_and_without_values() {
        let faults = Faults::parse("nested, write_late=300,die_at=stop,tpyo=1");
        assert!(faults.has("nested") && !faults.has("wrap"));
        assert_eq!(faults.number("write_late"), Some(300));
        assert!(faults.dies_at("stop") && !faults.dies_at("exit"));
        assert_eq!(faults.unknown, ["tpyo"]);
    }

    #[test]
    fn a_file_speaks_to_all_or_to_some() {
        let text = "# comment\nwrap\ndev: nested\nother: ghost\n6f1c3a52: queue\ndraft=a:b";
        let faults = Faults::parse_file(text, "dev", "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa");
        assert!(faults.has("wrap") && faults.has("nested") && faults.has("queue") && !faults.has("ghost"));
        assert_eq!(faults.text("draft"), Some("a:b"));
    }

    #[test]
    fn every_fault_stands_in_the_table() {
        let table = include_str!("faults.rs");
        for name in NAMES {
            assert!(
                table.lines().any(|line| line.starts_with("//! |") && line.contains(&format!("`{name}"))),
                "{name}"
            );
        }
    }
}
