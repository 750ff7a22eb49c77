//! Collects the rules that a document passes on to the documents after it. Otherwise a rule that one agent of a chain
//! leaves out would be lost.

use super::lines::{BOLD, LineKind, read};
use crate::core::cut::quotable_words;
use crate::core::text::normalise;
use regex::Regex;
use std::sync::LazyLock;

/// The most rules that are passed on.
const MOST_RULES: usize = 30;
/// Longest rule, in characters. A longer rule is cut; its `…` is counted.
const LONGEST: usize = 400;

/// Headings under which rules are written.
static HEADING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\b(?:rules?|constraints?|working on|goal|task)\b").expect("an expression"));
/// Words that make a line a rule.
static RULE: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"must|never|always|do not|don't|may not|not allowed|forbidden|only (?:if|when|after|with)|rule";
    Regex::new(&format!(r"(?i)\b(?:{words})\b")).expect("an expression")
});

/// The rules that a document hands down: first those of the documents before it (`earlier`), then its own. Its own are,
/// word for word, the lines under headings such as "Constraints" or "Goal" that say what must or must not be.
#[must_use]
pub fn handed_down_rules(earlier: &[String], document: &str) -> Vec<String> {
    let mut found: Vec<String> = earlier.iter().take(MOST_RULES).cloned().collect();
    let mut is_under = false;
    for line in read(document, &document.to_ascii_lowercase()).lines {
        let text = line.text.trim();
        let is_text = match line.kind {
            LineKind::Text | LineKind::Heading(_) => true,
            LineKind::FrontMatter | LineKind::Fence | LineKind::Code | LineKind::Unseen | LineKind::Blank => false,
        };
        // A line that is only bold does not begin a section here: it may be a rule.
        if line.level().is_some_and(|level| level < BOLD) {
            is_under = HEADING.is_match(text);
        } else if is_text && is_under && RULE.is_match(text) && found.len() < MOST_RULES {
            let rule = normalise(text.trim_start_matches(['-', '*', '+', '>', ' ']));
            let rule = quotable_words(&rule, LONGEST - 1);
            if !found.contains(&rule) {
                found.push(rule);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_taken_word_for_word_and_each_once() {
        let document = "# Handoff\n## What I was working on\nFix the parser.\n- Never force-push (Mia; it breaks the release).\n\
                        ```\nnever mind\n```\n## Blockers\nIt must be Tuesday.\n## Constraints\n* You must ask before you deploy.\n";
        let first = handed_down_rules(&[], document);
        assert_eq!(first, ["Never force-push (Mia; it breaks the release).", "You must ask before you deploy."]);
        assert_eq!(handed_down_rules(&first, document), first);
        let later = handed_down_rules(&first, "## Rules\n- Always sign commits.\n");
        assert_eq!(later.last().map(String::as_str), Some("Always sign commits."));
        assert_eq!(later.len(), 3);
    }

    #[test]
    fn an_underlined_heading_begins_and_ends_a_section_and_a_number_sign_before_a_word_does_not() {
        let document = "Constraints\n-----------\n- Never force-push.\n#12 must be closed first.\nBlockers\n--------\n\
                        - It must be Tuesday.\nRules\n=====\n- Always sign commits.\n# Next steps\n- We must hurry.\n";
        let expected = ["Never force-push.", "#12 must be closed first.", "Always sign commits."];
        assert_eq!(handed_down_rules(&[], document), expected);
    }

    #[test]
    fn a_long_rule_is_cut_between_two_words() {
        let rule = format!("Never show {}{}", "it, ".repeat(97), "0123456789abcdef".repeat(3));
        let rules = handed_down_rules(&[], &format!("## Rules\n- {rule}\n"));
        assert_eq!(rules, [format!("Never show {}…", "it, ".repeat(97))]);
    }

    #[test]
    fn fenced_lines_give_no_rule_and_end_no_section() {
        let document = "## Rules\n```\n~~~\nnever mind\n```\n- Always sign commits.\n````\n```\n# never\n````\n\
                        **Never** push.\n**You must ask.**\n## Blockers\n- It must be Tuesday.\n";
        assert_eq!(handed_down_rules(&[], document), ["Always sign commits.", "Never** push.", "You must ask.**"]);
    }
}
