//! Breaks a document into lines of limited length for the screen. Pure.

/// The most lines of a document.
pub(super) const MOST_LINES: usize = 20_000;
/// The most characters in a line; the screen breaks it to its own width.
const LONGEST: usize = 300;

/// The lines of a text; long lines are broken into parts. If lines are left out, the last one says so.
pub(super) fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().flat_map(parts).take(MOST_LINES).collect();
    if lines.len() == MOST_LINES {
        lines[MOST_LINES - 1] = "… more in the file".to_owned();
    }
    lines
}

/// The parts of a line, broken between words where that is possible.
fn parts(line: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((end, _)) = rest.char_indices().nth(LONGEST) {
        let end = rest[..end].rfind(' ').map_or(end, |blank| blank + 1);
        parts.push(rest[..end].replace('\t', "    "));
        rest = &rest[end..];
    }
    parts.push(rest.replace('\t', "    "));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_between_words_and_loses_nothing() {
        let text = format!("short\n\n{}\n{}\n\tend", "words and ".repeat(100), "x".repeat(1_000));
        let all = lines(&text);
        assert!(all.iter().all(|line| line.chars().count() <= LONGEST), "{all:?}");
        assert_eq!((all[0].as_str(), all[1].as_str(), all.last().map(String::as_str)), ("short", "", Some("    end")));
        assert_eq!(all.concat(), text.replace('\n', "").replace('\t', "    "));
        assert!(all[2].ends_with(' '), "{}", all[2]);
        assert_eq!(lines(&"é".repeat(301)), ["é".repeat(300), "é".to_owned()]);
    }

    #[test]
    fn a_text_of_very_many_lines_is_cut() {
        let all = lines(&"x\n".repeat(MOST_LINES + 5));
        assert_eq!((all.len(), all.last().map(String::as_str)), (MOST_LINES, Some("… more in the file")));
    }
}
