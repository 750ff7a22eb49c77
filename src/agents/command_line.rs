//! Takes a shell's command line apart, as far as one must to see which programs it runs: words, quotes, comments, texts
//! that follow `<<`. It is not a shell: variables, aliases and functions are not known to it.

/// How deep `sh -c` may contain another.
const MAX_DEPTH: u8 = 3;
/// Shells whose `-c` has a command line.
const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];
/// Words before the program that a command line runs; options and numbers that follow belong to them.
const BEFORE: &[&[&str]] = &[
    &["!"],
    &["{"],
    &["if"],
    &["then"],
    &["elif"],
    &["else"],
    &["while"],
    &["until"],
    &["do"],
    &["time"],
    &["timeout"],
    &["nice"],
    &["nohup"],
    &["env"],
    &["exec"],
    &["command"],
    &["sudo"],
    &["xargs"],
    &["npx"],
    &["bunx"],
    &["uv", "run"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["hatch", "run"],
    &["bundle", "exec"],
    &["pnpm", "exec"],
    &["yarn", "exec"],
    &["npm", "exec"],
    &["python", "-m"],
    &["python3", "-m"],
];

/// Options of such words whose value is a word of its own.
const WITH_VALUE: [&str; 3] = ["-u", "-C", "-k"];

/// Whether one of the commands of a line, taken apart, is one of these: a program's name and the words that follow it,
/// separated by blanks, such as `cargo test` or `git push`. Options may stand between the words. `and`: what else must
/// be true of the command's words.
pub(super) fn runs(line: &str, wanted: &[impl AsRef<str>], and: impl Fn(&[String]) -> bool) -> bool {
    let is_one = |words: &[String]| {
        wanted.iter().any(|wanted| is_call_of(words, &wanted.as_ref().split_whitespace().collect::<Vec<_>>()))
    };
    commands(line, MAX_DEPTH).iter().any(|words| {
        let mut words = Some(&words[..]);
        while let Some(here) = words.filter(|words| !words.is_empty()) {
            if is_one(here) {
                return and(here);
            }
            words = without_first(here);
        }
        false
    })
}

/// Whether the words call this program with these words.
fn is_call_of(words: &[String], wanted: &[&str]) -> bool {
    let [program, rest @ ..] = words else { return false };
    let [wanted_program, wanted @ ..] = wanted else { return false };
    if program.rsplit('/').next() != Some(wanted_program) {
        return false;
    }
    let mut wanted = wanted.iter().copied().peekable();
    // An option may have a value, which is a word of its own.
    let mut may_be_value = false;
    for word in rest {
        let Some(next) = wanted.peek() else { return true };
        // `npm run test:unit` is `npm run test` too.
        if word.strip_prefix(next).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
            wanted.next();
            may_be_value = false;
        } else if word.starts_with(['-', '+']) {
            may_be_value = word.starts_with('-') && !word.contains('=');
        } else if !std::mem::take(&mut may_be_value) {
            return false;
        }
    }
    wanted.peek().is_none()
}

/// Removes one assignment, or one wrapper such as `sudo`, from the beginning; `None` if there is none.
fn without_first(words: &[String]) -> Option<&[String]> {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    if is_assignment(&words[0]) {
        return Some(&words[1..]);
    }
    let program = words[0].rsplit('/').next()?;
    let fits = |before: &&&[&str]| {
        before[0] == program && words.len() >= before.len() && words[1..].iter().zip(&before[1..]).all(|(a, b)| a == b)
    };
    let before = BEFORE.iter().find(fits)?;
    let rest = &words[before.len()..];
    let mut at = 0;
    while let Some(word) = rest.get(at).filter(|word| word.starts_with(|c: char| c == '-' || c.is_ascii_digit())) {
        at += if WITH_VALUE.contains(&word.as_str()) { 2 } else { 1 };
    }
    rest.get(at..)
}

/// The simple commands of a line, each as its words, without quotes.
fn commands(line: &str, depth: u8) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for words in Splitter::split(line) {
        let inner = inner_line(&words).filter(|_| depth > 0).map(|line| commands(line, depth - 1));
        found.push(words);
        found.extend(inner.into_iter().flatten());
    }
    found
}

/// The command line that a shell is given with `-c`.
fn inner_line(words: &[String]) -> Option<&str> {
    let shell = words.iter().position(|word| SHELLS.contains(&word.rsplit('/').next().unwrap_or_default()))?;
    let is_option = |word: &&String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let option = words[shell + 1..].iter().position(|word| is_option(&word))?;
    words.get(shell + 2 + option).map(String::as_str)
}

/// Takes a line apart, character by character.
struct Splitter<'l> {
    rest: std::iter::Peekable<std::str::Chars<'l>>,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    before: char,
    /// The words that end the here-documents after this line.
    ends: Vec<String>,
}

impl<'l> Splitter<'l> {
    fn split(line: &'l str) -> Vec<Vec<String>> {
        let rest = line.chars().peekable();
        let mut splitter =
            Splitter { rest, commands: Vec::new(), words: Vec::new(), word: None, before: ' ', ends: Vec::new() };
        while let Some(c) = splitter.rest.next() {
            splitter.take(c);
            splitter.before = c;
        }
        splitter.end_command();
        splitter.commands
    }

    fn take(&mut self, c: char) {
        match c {
            '\n' => {
                self.end_command();
                self.skip_texts();
            }
            ' ' | '\t' | '\r' => self.end_word(),
            '&' if matches!(self.before, '>' | '<') || self.rest.peek() == Some(&'>') => self.push(c),
            ';' | '|' | '&' | '(' | ')' | '`' => self.end_command(),
            '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
            '<' if self.rest.next_if_eq(&'<').is_some() => self.here(),
            '\\' => match self.rest.next() {
                Some('\n') | None => {}
                Some(c) => self.push(c),
            },
            '\'' => self.quoted('\''),
            '"' => self.quoted('"'),
            c => self.push(c),
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, end: char) {
        let word = self.word.get_or_insert_default();
        while let Some(c) = self.rest.next().filter(|c| *c != end) {
            let escaped = (c == '\\' && end == '"').then(|| self.rest.next()).flatten();
            word.push(escaped.unwrap_or(c));
        }
    }

    /// After `<<`: a text follows this line, up to a line with the word that stands here. (`<<<` has its text here.)
    fn here(&mut self) {
        self.end_word();
        if self.rest.next_if_eq(&'<').is_some() {
            return;
        }
        while self.rest.next_if(|c| matches!(c, '-' | ' ' | '\t')).is_some() {}
        let mut end = String::new();
        while let Some(c) = self.rest.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | ')' | '<' | '>'))
        {
            if !matches!(c, '\'' | '"' | '\\') {
                end.push(c);
            }
        }
        if !end.is_empty() {
            self.ends.push(end);
        }
    }

    fn skip_texts(&mut self) {
        for end in std::mem::take(&mut self.ends) {
            while self.rest.peek().is_some() {
                let mut line = String::new();
                while let Some(c) = self.rest.next().filter(|c| *c != '\n') {
                    line.push(c);
                }
                if line.trim_start_matches('\t') == end {
                    break;
                }
            }
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_run(line: &str, wanted: &str) -> bool {
        runs(line, &[wanted], |_| true)
    }

    #[test]
    fn a_command_is_found_wherever_a_shell_would_run_it() {
        for line in [
            "cargo test",
            "cargo test -p x -- --nocapture 2>&1 | tail -20",
            "cd crates/x && cargo test",
            "make;cargo test",
            "RUST_LOG=debug CI=1 cargo test",
            "env -u X CI=1 cargo test --lib",
            "time cargo test",
            "timeout 60 cargo test",
            "nice -n 10 /root/.cargo/bin/cargo test",
            "cargo +nightly test",
            "cargo --config x.toml test",
            "if true; then cargo test; fi",
            "for i in 1 2 3; do cargo test || break; done",
            "(cd x && cargo test)",
            "x=$(cargo test 2>&1)",
            "! cargo test",
            "bash -lc 'cd x && cargo test'",
            "cargo build &>/dev/null && \\\n  cargo test",
            "cat <<'EOF' > notes\ncargo build\nEOF\ncargo test",
            "# the tests\ncargo test",
            "true|cargo test",
        ] {
            assert!(is_run(line, "cargo test"), "{line}");
        }
        assert!(
            is_run("git -C /w/x push origin main", "git push")
                && is_run("npm --prefix web run test:unit", "npm run test")
        );
        assert!(
            is_run("python3 -m pytest -q", "pytest") && is_run("uv run pytest", "pytest") && is_run("npx jest", "jest")
        );
        assert!(is_run("bundle exec rake test", "bundle exec rake test") && is_run("./gradlew test", "gradlew test"));
    }

    #[test]
    fn a_command_that_is_only_spoken_of_is_not_run() {
        for line in [
            "git commit -m 'cargo test passes'",
            "git commit -m \"fix: \\\"cargo test\\\"; cargo test\"",
            "grep -rn \"cargo test\" .",
            "rg 'cargo test|go test'",
            "echo cargo test",
            "cargo build --test x",
            "cargo build # cargo test",
            "cat > x.sh <<'EOF'\ncargo test\nEOF",
            "cat <<-END\n\tcargo test\n\tEND",
            "cat <<EOF\ncargo test",
            "cargo tests",
            "mycargo test",
            "cargo help test",
            "which cargo && ls test",
        ] {
            assert!(!is_run(line, "cargo test"), "{line}");
        }
        assert!(!is_run("git stash push", "git push") && !is_run("git log --oneline push", "git push origin"));
    }

    #[test]
    fn broken_lines_are_read_to_their_end() {
        for line in [
            "'",
            "\"\\",
            "<<",
            "<<'",
            "\\",
            "&&&",
            "a <<X",
            "$(",
            "((((",
            "bash -c",
            "env",
            "sh -c 'sh -c \"sh -c x\"'",
            "",
        ] {
            assert!(!is_run(line, "cargo test"), "{line}");
        }
        assert!(is_run("echo 'ä' \u{1f600}; cargo test \u{301}", "cargo test"));
    }
}
