//! Facts as Markdown, for the successor and for the operator. Each text from outside is quoted or marked as code, so
//! that it can't pass for a heading or an instruction of tasuki's.

use super::drift::counted;
use crate::contract::Facts;
use crate::contract::facts::{ActionFacts, CommandFacts, RepositoryFacts};
use crate::core::text::sanitise;
use std::fmt::Write as _;

/// The largest number of changed files, and of written files, that are listed.
const MOST_FILES: usize = 60;

/// The text of the file `<document>.facts.md`.
#[must_use]
pub fn markdown(facts: &Facts) -> String {
    let mut page = format!("# What tasuki saw at {}\n\n", facts.taken_at);
    page.push_str(
        "tasuki took these facts itself, at the time above. Lines that begin with `>` were written by others.\n",
    );
    if let Some(repository) = &facts.repository {
        about_repository(&mut page, repository);
    }
    if let Some(actions) = &facts.actions {
        about_actions(&mut page, actions);
    }
    if let Some(running) = facts.running.as_ref().filter(|running| !running.is_empty()) {
        page.push_str("\n## Still running below the agent\n\n");
        for process in running {
            let ports: Vec<String> = process.ports.iter().map(u16::to_string).collect();
            let listens = if ports.is_empty() { String::new() } else { format!(", listens on {}", ports.join(", ")) };
            line(&mut page, &format!("process {}{listens}: {}", process.pid, code(&process.command)));
        }
    }
    if let Some(user) = facts.user.as_ref().filter(|user| user.first.is_some() || !user.last.is_empty()) {
        page.push_str("\n## What the user asked\n");
        // Of a short session the last prompts begin with the first one.
        let is_first = |(place, text): &(usize, &String)| *place == 0 && Some(*text) == user.first.as_ref();
        let later = user.last.iter().enumerate().filter(|one| !is_first(one)).map(|(_, text)| ("Later", text));
        for (name, text) in user.first.iter().map(|text| ("First", text)).chain(later) {
            let _ = write!(page, "\n{name}:\n\n{}\n", quoted(text));
        }
    }
    about_session(&mut page, facts);
    about_chain(&mut page, facts);
    if !facts.not_known.is_empty() {
        page.push_str("\n## Not known\n\n");
        facts.not_known.iter().for_each(|why| line(&mut page, why));
    }
    page
}

fn about_repository(page: &mut String, repository: &RepositoryFacts) {
    page.push_str("\n## Repository\n\n");
    line(page, &format!("folder: {}", code(&repository.root)));
    match &repository.branch {
        Some(branch) => line(page, &format!("branch: {}", code(branch))),
        None => line(page, "HEAD is detached"),
    }
    if let Some(head) = &repository.head {
        let subject = repository.subject.as_deref().map(|subject| format!(", {}", code(subject))).unwrap_or_default();
        line(page, &format!("HEAD: {}{subject}", code(head)));
    }
    if let Some(upstream) = &repository.upstream {
        let ahead = repository.ahead.map(|ahead| counted(ahead, "commit", "commits"));
        let ahead = ahead.unwrap_or_else(|| "an unknown number of commits".to_owned());
        let behind = repository.behind.map_or_else(|| "an unknown number".to_owned(), |behind| behind.to_string());
        line(page, &format!("upstream: {}, {ahead} ahead, {behind} behind", code(upstream)));
    }
    match repository.head_on_remote {
        Some(true) => line(page, "HEAD is on a remote branch"),
        Some(false) => line(page, "HEAD is on no remote branch: it was not pushed"),
        None => {}
    }
    if let Some(state) = &repository.in_progress {
        line(page, &format!("a {state} is in progress"));
    }
    if let Some(stashes) = repository.stashes.filter(|stashes| *stashes > 0) {
        line(page, &format!("stashes: {stashes}"));
    }
    match repository.changed {
        Some(0) => line(page, "no file differs from HEAD"),
        Some(changed) => {
            let stat = repository.diff_stat.as_deref().map(|stat| format!(" ({})", stat.trim())).unwrap_or_default();
            line(page, &format!("{} from HEAD{stat}:", counted(changed, "file differs", "files differ")));
            for file in repository.status.iter().take(MOST_FILES) {
                let _ = writeln!(page, "  - {} {}", code(&file.state), code(&file.path));
            }
        }
        None => {}
    }
    if !repository.commits.is_empty() {
        page.push_str("\nCommits since the agent began, newest first:\n\n");
        for commit in &repository.commits {
            let short: String = commit.commit.chars().take(12).collect();
            line(page, &format!("{} {}", code(&short), code(&commit.subject)));
        }
    }
}

fn about_actions(page: &mut String, actions: &ActionFacts) {
    if let Some(test) = &actions.last_test {
        page.push_str("\n## The last test\n\n");
        line(page, &command(test));
        if let Some(printed) = test.printed.as_deref().filter(|printed| !printed.trim().is_empty()) {
            let _ = write!(page, "\n{}\n", quoted(printed));
        }
    }
    let (failed, sent): (Vec<_>, Vec<_>) = actions.sent.iter().partition(|sent| sent.failed == Some(true));
    if !sent.is_empty() {
        page.push_str("\n## Sent, not to be repeated\n\n");
        sent.iter().for_each(|sent| line(page, &command(sent)));
    }
    if !failed.is_empty() {
        // If `git push && make deploy` has failed, the push may have succeeded.
        page.push_str("\n## Tried to send, but the command failed: see whether it was sent before you repeat it\n\n");
        failed.iter().for_each(|failed| line(page, &command(failed)));
    }
    if !actions.files.is_empty() {
        page.push_str("\n## Files that the agent wrote, the last one first\n\n");
        for file in actions.files.iter().take(MOST_FILES) {
            line(page, &format!("{}: {}", code(&file.path), file.state));
        }
    }
    if !actions.commands.is_empty() {
        page.push_str("\n## Last commands, oldest first\n\n");
        actions.commands.iter().for_each(|ran| line(page, &command(ran)));
    }
}

fn about_session(page: &mut String, facts: &Facts) {
    let Some(session) = &facts.conversation else { return };
    page.push_str("\n## Session\n\n");
    if let Some(model) = &session.model {
        line(page, &format!("model: {}", code(model)));
    }
    if let Some(percent) = session.context_percent {
        line(page, &format!("context: {percent} %"));
    }
    if let Some(compactions) = session.compactions.filter(|compactions| *compactions > 0) {
        let times = counted(compactions, "time", "times");
        line(page, &format!("compacted {times}: the agent has forgotten what was before"));
    }
    if let Some(path) = &session.transcript_path {
        line(page, &format!("transcript: {}", code(path)));
    }
    if let Some(resume) = &session.resume_command {
        line(page, &format!("to open it again: {}", code(resume)));
    }
}

fn about_chain(page: &mut String, facts: &Facts) {
    let chain = &facts.chain;
    if chain.earlier.is_empty() && chain.rules.is_empty() {
        return;
    }
    let _ = write!(page, "\n## Handoffs before this one\n\nThis is handoff {} of the chain.\n\n", chain.generation);
    for earlier in &chain.earlier {
        let at = earlier.checkpoint.as_deref().map(|at| format!(", checkpoint: {}", code(at))).unwrap_or_default();
        line(page, &format!("{}{at}", code(&earlier.file_path)));
    }
    if !chain.rules.is_empty() {
        page.push_str("\nRules from these documents, word for word:\n\n");
        chain.rules.iter().for_each(|rule| {
            let _ = writeln!(page, "{}", quoted(rule));
        });
    }
}

fn command(ran: &CommandFacts) -> String {
    let end = match (ran.exit, ran.failed) {
        (Some(exit), _) => format!(": exit {exit}"),
        (None, Some(true)) => ": failed".to_owned(),
        (None, Some(false)) => ": did not fail".to_owned(),
        (None, None) => String::new(),
    };
    let at = ran.at.as_deref().map(|at| format!(", at {}", sanitise(at))).unwrap_or_default();
    format!("{}{end}{at}", code(&ran.command))
}

fn line(page: &mut String, text: &str) {
    let _ = writeln!(page, "- {text}");
}

/// A text as code in one line. More backticks surround the text than it holds, so it can't end the code.
fn code(text: &str) -> String {
    let text = sanitise(text).replace(['\n', '\r'], " ");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

/// A text as a quotation, with `> ` before each line.
fn quoted(text: &str) -> String {
    let text = sanitise(text);
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::facts::{ChangedFile, ConversationFacts, UserFacts};

    #[test]
    fn a_text_from_outside_stays_in_its_place() {
        let facts = Facts {
            repository: Some(RepositoryFacts {
                root: "/w".to_owned(),
                branch: Some("a`b".to_owned()),
                changed: Some(1),
                status: vec![ChangedFile { path: "x\n# Heading".to_owned(), state: "??".to_owned() }],
                ..RepositoryFacts::default()
            }),
            user: Some(UserFacts {
                first: Some("a\n# Heading\u{1b}[31m".to_owned()),
                last: vec!["a\n# Heading\u{1b}[31m".to_owned(), "b".to_owned()],
            }),
            ..Facts::default()
        };
        let page = markdown(&facts);
        assert!(page.contains("branch: ``a`b``"), "{page}");
        assert!(page.lines().all(|line| !line.starts_with("# Heading") && !line.contains('\u{1b}')), "{page}");
        let (one, two) = (page.matches("> # Heading").count(), page.matches("Later:").count());
        assert_eq!((one, two), (1, 1), "the first prompt is not told twice: {page}");
        assert!(page.contains("> # Heading") && page.contains("  - `??` `x # Heading`"), "{page}");
    }

    #[test]
    fn one_thing_is_told_as_one() {
        let page = |count: Option<u64>| {
            markdown(&Facts {
                repository: Some(RepositoryFacts {
                    upstream: Some("origin/main".to_owned()),
                    ahead: count,
                    behind: count,
                    changed: count,
                    ..RepositoryFacts::default()
                }),
                conversation: Some(ConversationFacts { compactions: count, ..ConversationFacts::default() }),
                ..Facts::default()
            })
        };
        let (one, two) = (page(Some(1)), page(Some(2)));
        for told in [", 1 commit ahead, 1 behind\n", "- 1 file differs from HEAD:\n", "- compacted 1 time: "] {
            assert!(one.contains(told), "{told}: {one}");
        }
        for told in [", 2 commits ahead, 2 behind\n", "- 2 files differ from HEAD:\n", "- compacted 2 times: "] {
            assert!(two.contains(told), "{told}: {two}");
        }
        let unknown = page(None);
        assert!(unknown.contains(", an unknown number of commits ahead, an unknown number behind\n"), "{unknown}");
    }

    #[test]
    fn what_failed_is_not_told_as_sent() {
        let ran =
            |command: &str, failed| CommandFacts { command: command.to_owned(), failed, ..CommandFacts::default() };
        let page = |sent| {
            markdown(&Facts { actions: Some(ActionFacts { sent, ..ActionFacts::default() }), ..Facts::default() })
        };
        let both = page(vec![ran("git push", Some(true)), ran("npm publish", None), ran("cargo publish", Some(false))]);
        let sent = "## Sent, not to be repeated\n\n- `npm publish`\n- `cargo publish`: did not fail\n";
        let tried = "before you repeat it\n\n- `git push`: failed\n";
        assert!(both.contains(sent) && both.ends_with(tried), "{both}");
        assert!(!page(vec![ran("git push", Some(true))]).contains("not to be repeated"));
        assert!(!page(vec![ran("git push", None)]).contains("Tried"));
    }
}
