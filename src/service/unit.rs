//! systemd's unit. The packaged file is the template, so that both say the same.

use super::{Plan, UnfitValue, Written};

/// Lines that confine everything that the program starts.
const CONFINING: [&str; 8] = [
    "LockPersonality=",
    "NoNewPrivileges=",
    "RestrictAddressFamilies=",
    "RestrictRealtime=",
    "RestrictSUIDSGID=",
    "SystemCallArchitectures=",
    "SystemCallErrorNumber=",
    "SystemCallFilter=",
];

/// The unit for this user and this machine.
///
/// # Errors
/// A path or a name can't be written into it.
pub fn render(plan: &Plan) -> Result<String, UnfitValue> {
    let words: Vec<String> = plan.words()?.iter().map(|word| quoted(word, true)).collect();
    let service = plan.service;
    let mut unit = format!(
        "# {}, which rewrites this file on every run; `{} uninstall` removes it.\n",
        service.ours(),
        service.command
    );
    // The packaged file begins with comments about itself, which are not true of this file.
    for line in service.unit_template.lines().skip_while(|line| line.starts_with('#')) {
        if plan.starts_server && CONFINING.iter().any(|key| line.starts_with(key)) {
            continue;
        }
        if line.starts_with("ExecStart=") {
            unit.push_str(&format!("ExecStart={}\n", words.join(" ")));
            for (name, value) in &plan.environment {
                unit.push_str(&format!("Environment={}\n", quoted(&format!("{name}={value}"), false)));
            }
        } else {
            unit.push_str(line);
            unit.push('\n');
        }
    }
    Ok(unit)
}

/// Reads a unit that [`render`] wrote; `None` if its `ExecStart` is not quoted as `render` quotes it, as in a unit that
/// a person wrote. Other changes are not noticed.
#[must_use]
pub fn read(text: &str) -> Option<Written> {
    let words = unquoted(text.lines().find_map(|line| line.strip_prefix("ExecStart="))?, true)?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("Environment="));
    let environment: Vec<String> = lines.filter_map(|line| unquoted(line, false)?.pop()).collect();
    let pair = |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Some(Written { words, environment: environment.iter().filter_map(pair).collect() })
}

/// The words of a line; `None` if one of them is not quoted as [`quoted`] does it.
fn unquoted(line: &str, in_command: bool) -> Option<Vec<String>> {
    let (mut words, mut letters) = (Vec::new(), line.chars().peekable());
    while letters.peek().is_some() {
        let mut word = String::new();
        if letters.next() != Some('"') {
            return None;
        }
        loop {
            match letters.next()? {
                '"' => break,
                '\\' => word.push(letters.next()?),
                sign @ ('%' | '$') if sign == '%' || in_command => {
                    letters.next_if_eq(&sign)?;
                    word.push(sign);
                }
                letter => word.push(letter),
            }
        }
        words.push(word);
        letters.next_if_eq(&' ');
    }
    (!words.is_empty()).then_some(words)
}

/// One word in systemd's own quoting: `%` begins a specifier everywhere, `$` a variable in command lines only.
fn quoted(word: &str, in_command: bool) -> String {
    let mut quoted = String::from("\"");
    for char in word.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '%' => quoted.push_str("%%"),
            '$' if in_command => quoted.push_str("$$"),
            _ => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::SIDECAR;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn plan() -> Plan {
        Plan {
            service: &SIDECAR,
            program: PathBuf::from("/opt/my tools/tasuki"),
            home: PathBuf::from("/home/ada/100%\"$HOME"),
            tmux: Some("work".to_owned()),
            environment: BTreeMap::from([("PATH".to_owned(), "/a b:/c$d".to_owned())]),
            starts_server: false,
            log: PathBuf::from("/home/ada/log"),
        }
    }

    #[test]
    fn paths_and_variables_are_quoted_as_systemd_reads_them() {
        let unit = render(&plan()).expect("fit");
        let exec =
            "ExecStart=\"/opt/my tools/tasuki\" \"--home\" \"/home/ada/100%%\\\"$$HOME\" \"run\" \"--tmux\" \"work\"\n";
        assert!(unit.contains(exec), "{unit}");
        assert!(unit.contains("Environment=\"PATH=/a b:/c$d\"\n"), "{unit}");
        assert!(unit.starts_with("# Written by `tasuki service install`"), "{unit}");
        assert!(unit.contains("NoNewPrivileges=yes\n"), "{unit}");
    }

    #[test]
    fn a_written_unit_can_be_read_again() {
        let plan = plan();
        let read = read(&render(&plan).expect("fit")).expect("ours");
        assert_eq!(Ok(read.words), plan.words());
        assert_eq!(read.environment, plan.environment.into_iter().collect::<Vec<_>>());
        assert_eq!(super::read("[Service]\nExecStart=/usr/bin/tasuki run\n"), None);
    }

    #[test]
    fn a_service_that_may_start_a_tmux_server_confines_nothing() {
        let unit = render(&Plan { starts_server: true, ..plan() }).expect("fit");
        assert!(!CONFINING.iter().any(|key| unit.contains(key)), "{unit}");
        assert!(unit.contains("WatchdogSec=30\n") && unit.contains("KillMode=process\n"), "{unit}");
    }

    #[test]
    fn a_path_that_would_make_a_line_of_its_own_is_refused() {
        let refused = render(&Plan { home: PathBuf::from("/x\nExecStartPre=/bin/evil"), ..plan() });
        assert!(refused.expect_err("control characters").to_string().contains("the path of the home"));
    }
}
