//! Makes facts of an agent's tool calls: which files it wrote, which commands it ran, how the last test ended, what
//! left the machine.

use super::command_line::runs;
use super::tool_calls::{ToolCall, ToolKind};
use crate::contract::facts::{ActionFacts, CommandFacts, WrittenFile};
use crate::core::cut::{self, quotable_words};
use crate::core::text::{normalise, sanitise};
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The commands that count as tests unless the configuration says otherwise: a program's name and the words that follow
/// it.
pub const TESTS: [&str; 30] = [
    "cargo test",
    "cargo nextest",
    "pytest",
    "tox",
    "nox",
    "python -m unittest",
    "python3 -m unittest",
    "npm test",
    "npm run test",
    "pnpm test",
    "pnpm run test",
    "yarn test",
    "yarn run test",
    "bun test",
    "deno test",
    "jest",
    "vitest",
    "go test",
    "make test",
    "make check",
    "just test",
    "ctest",
    "mvn test",
    "gradle test",
    "gradlew test",
    "rspec",
    "bundle exec rake test",
    "phpunit",
    "dotnet test",
    "swift test",
];
/// What sends something away from the machine.
const SENDS: [&str; 22] = [
    "git push",
    "gh pr create",
    "gh pr merge",
    "gh pr comment",
    "gh pr review",
    "gh pr close",
    "gh issue create",
    "gh issue comment",
    "gh issue close",
    "gh release create",
    "gh release upload",
    "glab mr create",
    "glab mr merge",
    "npm publish",
    "pnpm publish",
    "yarn publish",
    "cargo publish",
    "twine upload",
    "twine publish",
    "gem push",
    "docker push",
    "podman push",
];

const MAX_FILES: usize = 100;
const MAX_COMMANDS: usize = 20;
const MAX_SENT: usize = 10;
/// Longest command line and longest output, in characters.
const MAX_TEXT: usize = 500;

/// What an agent did, by its tool calls, oldest first. The caller must find out whether the files still exist, and
/// whether a text holds a secret.
#[must_use]
pub fn actions(calls: &[ToolCall], tests: &[impl AsRef<str>]) -> ActionFacts {
    let commands = || calls.iter().rev().filter(|call| call.kind == ToolKind::Command);
    let is_sent = |words: &[String]| !is_rehearsal(words);
    // A failed run is left out if the same command ran again later.
    let mut later = BTreeSet::new();
    let sent = commands()
        .filter(|call| runs(&call.target, &SENDS, is_sent))
        .filter(|call| later.insert(call.target.as_str()) || call.failed != Some(true))
        .take(MAX_SENT);
    let test = commands().find(|call| runs(&call.target, tests, |_| true));
    ActionFacts {
        files: files(calls),
        commands: in_order(commands().take(MAX_COMMANDS)),
        last_test: test
            .map(|call| CommandFacts { printed: call.printed.as_deref().and_then(last_lines), ..fact(call) }),
        sent: in_order(sent),
    }
}

/// The files that were written, the last one first. A call that has failed has written nothing.
fn files(calls: &[ToolCall]) -> Vec<WrittenFile> {
    let mut seen = BTreeSet::new();
    let written = calls.iter().rev().filter(|call| call.kind == ToolKind::Write && call.failed != Some(true));
    let paths = written.map(|call| sanitise(call.target.trim()).replace(['\n', '\t'], " "));
    let distinct = paths.filter(|path| !path.is_empty() && seen.insert(path.clone()));
    distinct.take(MAX_FILES).map(|path| WrittenFile { path, ..WrittenFile::default() }).collect()
}

fn in_order<'c>(latest_first: impl Iterator<Item = &'c ToolCall>) -> Vec<CommandFacts> {
    let mut facts: Vec<CommandFacts> = latest_first.map(fact).collect();
    facts.reverse();
    facts
}

fn fact(call: &ToolCall) -> CommandFacts {
    CommandFacts {
        command: quotable_words(&normalise(&call.target), MAX_TEXT - 1),
        exit: call.exit,
        failed: call.failed,
        printed: None,
        at: call.at.clone(),
    }
}

/// Whether a command only shows what it would send.
fn is_rehearsal(words: &[String]) -> bool {
    let short = words.first().is_some_and(|program| program.ends_with("git"));
    words.iter().any(|word| word == "--dry-run" || (short && word == "-n"))
}

/// The last whole lines that fit, without what drives a terminal.
fn last_lines(printed: &str) -> Option<String> {
    static ESCAPES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)").ok());
    let plain = ESCAPES.as_ref().map_or_else(|| printed.into(), |escapes| escapes.replace_all(printed, ""));
    let text = sanitise(&plain.replace("\r\n", "\n").replace('\r', "\n"));
    let mut lines: Vec<&str> = Vec::new();
    let mut room = MAX_TEXT;
    for line in text.trim_end().lines().rev() {
        let length = line.chars().count() + usize::from(!lines.is_empty());
        if length > room {
            break;
        }
        room -= length;
        lines.push(line);
    }
    lines.reverse();
    let whole = lines.join("\n").trim_matches('\n').to_owned();
    if !whole.is_empty() {
        return Some(whole);
    }
    let last = text.trim_end().lines().next_back().filter(|line| !line.trim().is_empty())?;
    let from = last.char_indices().nth_back(MAX_TEXT - 2).map_or(0, |(at, _)| at);
    Some(format!("…{}", cut::end(last, last.len() - from)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_whole_or_gone, token};
    use super::*;

    fn call(kind: ToolKind, target: &str, failed: Option<bool>) -> ToolCall {
        ToolCall { kind, target: target.to_owned(), exit: None, failed, printed: None, at: None }
    }

    fn command(target: &str) -> ToolCall {
        call(ToolKind::Command, target, Some(false))
    }

    #[test]
    fn files_are_named_once_the_last_first_and_not_if_the_call_has_failed() {
        let write = |path: &str| call(ToolKind::Write, path, Some(false));
        let mut calls: Vec<ToolCall> = (0..150).map(|n| write(&format!("/w/{n}"))).collect();
        calls.extend([write("/w/149"), write("/w/0"), call(ToolKind::Write, "/w/no", Some(true))]);
        calls.extend([call(ToolKind::Write, "/w/maybe", None), call(ToolKind::Read, "/w/read", None)]);
        let facts = actions(&calls, &TESTS);
        let paths: Vec<&str> = facts.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths[..4], ["/w/maybe", "/w/0", "/w/149", "/w/148"]);
        assert_eq!(paths.len(), MAX_FILES);
        assert!(facts.commands.is_empty() && facts.last_test.is_none() && facts.sent.is_empty());
    }

    #[test]
    fn commands_are_one_short_line_each_and_the_last_ones() {
        let mut calls: Vec<ToolCall> = (0..30).map(|n| command(&format!("echo {n}"))).collect();
        calls.push(command(&format!("cat <<X\n\u{1b}[31m{}\nX", "ä".repeat(2_000))));
        let facts = actions(&calls, &TESTS);
        assert_eq!((facts.commands.len(), facts.commands[0].command.as_str()), (MAX_COMMANDS, "echo 11"));
        let last = &facts.commands[MAX_COMMANDS - 1].command;
        assert_eq!(last.chars().count(), MAX_TEXT);
        assert!(last.starts_with("cat <<X [31mää") && last.ends_with("ä…"), "{last}");
    }

    #[test]
    fn the_last_test_comes_with_its_last_lines() {
        let mut test = command("cd x && cargo test 2>&1 | tail");
        let lines: String = (0..100).map(|n| format!("line {n}\r\n")).collect();
        test.printed = Some(format!("{lines}\u{1b}[1;31mtest result: FAILED.\u{1b}[0m 3 passed\n\n"));
        (test.exit, test.failed) = (Some(101), Some(true));
        let calls = [command("cargo test"), test, command("git commit -m 'cargo test'"), command("grep 'go test' x")];
        let found = actions(&calls, &TESTS).last_test.expect("a test");
        assert_eq!((found.exit, found.failed), (Some(101), Some(true)));
        let printed = found.printed.expect("its output");
        assert!(printed.ends_with("line 99\ntest result: FAILED. 3 passed"), "{printed}");
        assert!(printed.chars().count() <= MAX_TEXT && printed.starts_with("line "), "{printed}");
        let none: [&str; 0] = [];
        assert!(actions(&calls, &none).last_test.is_none());
        assert!(actions(&[command("./check --fast")], &["check"]).last_test.is_some());
    }

    #[test]
    fn a_long_last_line_is_cut_at_its_beginning() {
        let printed = last_lines(&format!("one\n{}end\n", "é".repeat(900))).expect("a line");
        assert!(printed.starts_with('…') && printed.ends_with("éend"), "{printed}");
        assert_eq!(printed.chars().count(), MAX_TEXT);
        assert_eq!((last_lines(" \n\n"), last_lines("")), (None, None));
        assert_eq!(last_lines("10 %\r20 %\rdone").as_deref(), Some("10 %\n20 %\ndone"));
    }

    #[test]
    fn no_token_is_cut_in_two() {
        let token = token();
        for before in 0..MAX_TEXT + 10 {
            let line = |before: usize| format!("{} {token} {}", "x ".repeat(before / 2), "y ".repeat(MAX_TEXT / 3));
            let ran = fact(&command(&line(before)));
            assert!(is_whole_or_gone(&ran.command), "{before}: {}", ran.command);
            let printed = last_lines(&format!("{}{}", "y ".repeat(before), line(before))).expect("a line");
            assert!(is_whole_or_gone(&printed), "{before}: {printed}");
        }
    }

    #[test]
    fn what_left_the_machine_is_listed() {
        let lines = [
            "git push",
            "git -C /w/x push -u origin main",
            "cd x && git commit -m 'x' && git push --force-with-lease",
            "gh pr create --fill",
            "gh pr merge 12 --squash",
            "gh issue comment 3 --body 'git push'",
            "gh release create v1",
            "npm publish --access public",
            "cargo publish -p x",
            "python -m twine upload dist/*",
            "docker push me/x:1",
        ];
        let not = [
            "git push --dry-run",
            "git push -n",
            "git pull",
            "gh pr view",
            "git stash push",
            "echo git push",
            "cargo publish --dry-run",
        ];
        let calls: Vec<ToolCall> = lines.iter().chain(&not).map(|line| command(line)).collect();
        let sent: Vec<String> = actions(&calls, &TESTS).sent.into_iter().map(|sent| sent.command).collect();
        assert_eq!(sent, &lines[1..], "the last ten");
        let push = |failed: Option<bool>| call(ToolKind::Command, "git push", failed);
        let failed = |calls: &[ToolCall]| -> Vec<Option<bool>> {
            actions(calls, &TESTS).sent.into_iter().map(|sent| sent.failed).collect()
        };
        assert_eq!(
            failed(&[push(None), push(Some(true)), command("npm publish"), push(Some(true))]),
            [None, Some(false), Some(true)]
        );
        assert_eq!(failed(&[push(Some(true)), push(Some(true)), push(Some(false))]), [Some(false)], "it went at last");
    }
}
