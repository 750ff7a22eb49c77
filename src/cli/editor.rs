//! Shows a text to the person at this terminal, in their own editor. The editor opens a copy, in a folder that only
//! this user can open. The folder is removed afterwards.

use super::error::CliError;
use super::names;
use super::output::Out;
use crate::files;
use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

/// The program that is started if neither `VISUAL` nor `EDITOR` is set.
const PAGER: &str = "less";

/// Shows the text, and returns when the person has closed the editor. If no editor can be started, the text is printed.
///
/// # Errors
/// The copy can't be written, or the output is closed.
pub(super) fn show(out: &Out, name: &str, text: &str) -> Result<(), CliError> {
    let chosen = ["VISUAL", "EDITOR"].into_iter().find_map(names::variable);
    let is_chosen = chosen.is_some();
    let words = words(chosen.as_deref().unwrap_or(PAGER)).unwrap_or_default();
    let Some((program, options)) = words.split_first() else {
        out.note("The value of VISUAL or EDITOR is not a command line.");
        return out.raw(text);
    };
    let failed =
        |error: std::io::Error| CliError::refused("file", format!("Can't write a copy for the editor: {error}."));
    let make = |at: &Path| {
        let mode = Permissions::from_mode(0o700);
        tempfile::Builder::new().prefix("tasuki-review.").permissions(mode).tempdir_in(at)
    };
    let folder = files::temporary(make).map_err(|error| failed(error.into()))?;
    let path = folder.path().join(name);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
    // Started directly: no shell reads the command line or the text.
    match Command::new(program).args(options).arg(&path).status() {
        Ok(_) => Ok(()),
        Err(error) => {
            if is_chosen {
                out.note(&format!("The editor {program} can't be started: {error}."));
            }
            out.raw(text)
        }
    }
}

/// The words of a command line as a shell splits them, with quotation marks and backslashes; nothing is expanded.
/// `None` if a quotation mark is not closed or the line ends with a backslash.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(letters.next()?),
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_may_have_options() {
        let split = |line: &str| words(line).unwrap_or_default().join("|");
        for (line, expected) in [
            ("vim", "vim"),
            ("  code  --wait ", "code|--wait"),
            ("emacsclient -a \"\" -t", "emacsclient|-a||-t"),
            ("'/opt/my editor/ed' --title=\"a b\"", "/opt/my editor/ed|--title=a b"),
            ("/opt/my\\ editor -c 'set \"x\" \\n'", "/opt/my editor|-c|set \"x\" \\n"),
            ("vi; rm $HOME `x`", "vi;|rm|$HOME|`x`"),
            ("", ""),
        ] {
            assert_eq!(split(line), expected, "{line}");
        }
        for wrong in ["vim 'x", "vim \"x", "vim \\"] {
            assert_eq!(words(wrong), None, "{wrong}");
        }
    }
}
