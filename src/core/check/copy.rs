//! Finds out whether a document is a copy of the predecessor's document or of the instruction. Texts are compared by
//! runs of a few words. So a copy is found even if lines have moved, or white space and marks have changed.

use super::lines::{Document, read};
use super::report::FaultReport;
use crate::contract::document::FaultCheck;

/// Words in a run.
const RUN: usize = 5;
/// A document with fewer runs is too short to compare.
const FEWEST_RUNS: usize = 30;
/// A document is a copy if it shares at least so many percent of its runs.
const COPY_PERCENT: usize = 90;
/// If a text has more runs, only a sample of about this size is compared.
const MOST_RUNS: usize = 16_384;

pub(super) fn check(document: &Document<'_>, predecessor: Option<&str>, instruction: &str, report: &mut FaultReport) {
    let all = runs(document);
    if all.len() < FEWEST_RUNS {
        return;
    }
    let others = [(predecessor, "the document of the agent's predecessor"), (Some(instruction), "the instruction")];
    for (other, name) in others {
        let Some(percent) = other.and_then(|other| shared_percent(&all, other)) else { continue };
        if percent >= COPY_PERCENT {
            let said = format!("{percent} % of the document is also in {name}");
            report.fix(FaultCheck::Copy, None, &said, "it must say what happened since");
        }
    }
}

/// How many percent of a document's runs another text has too. None if there is too little to compare.
fn shared_percent(all: &[u64], other: &str) -> Option<usize> {
    let lower = other.to_ascii_lowercase();
    let other = read(&lower, &lower);
    let mut others = runs(&other);
    let one_in = (all.len().max(others.len()) / MOST_RUNS).max(1) as u64;
    let is_chosen = |run: &u64| one_in == 1 || run.is_multiple_of(one_in);
    others.retain(is_chosen);
    others.sort_unstable();
    let chosen = all.iter().filter(|run| is_chosen(run));
    let (mut count, mut shared) = (0, 0);
    for run in chosen {
        count += 1;
        shared += usize::from(others.binary_search(run).is_ok());
    }
    (count >= FEWEST_RUNS).then(|| 100 * shared / count)
}

/// A hash of each run of words in the text. Headings are left out, and no run crosses one, because two documents of the
/// same form share their headings.
fn runs(document: &Document<'_>) -> Vec<u64> {
    let (mut runs, mut last, mut count) = (Vec::new(), [0_u64; RUN], 0_usize);
    for line in &document.lines {
        if line.level().is_some() {
            count = 0;
        } else if line.is_body() {
            words(line.lower, |word| {
                last[count % RUN] = word;
                count += 1;
                if count >= RUN {
                    let in_order = (0..RUN).map(|back| last[(count + back) % RUN]);
                    runs.push(in_order.fold(0, |run, word| mixed(run ^ word)));
                }
            });
        }
    }
    runs
}

/// Calls `take` with a hash of each word of a line.
fn words(line: &str, mut take: impl FnMut(u64)) {
    let mut word = EMPTY;
    for c in line.chars() {
        let is_letter = c.is_alphanumeric();
        if word != EMPTY && (!is_letter || is_a_word(c)) {
            take(std::mem::replace(&mut word, EMPTY));
        }
        if is_letter && is_a_word(c) {
            take(mixed(u64::from(c)));
        } else if is_letter {
            word = mixed(word ^ u64::from(c));
        }
    }
    if word != EMPTY {
        take(word);
    }
}

/// The hash of a word before its first letter.
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// Whether a letter is a word of its own: Chinese and Japanese are written without blanks.
fn is_a_word(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Mixes the bits of a number, so that similar numbers give very different ones.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str, other: &str) -> Option<usize> {
        let lower = text.to_ascii_lowercase();
        shared_percent(&runs(&read(&lower, &lower)), other)
    }

    fn words(from: usize, to: usize) -> String {
        (from..to).map(|word| format!("{}word{word}", if word % 9 == 0 { "\n" } else { " " })).collect()
    }

    #[test]
    fn the_share_is_a_percentage_of_the_new_document() {
        let old = words(0, 1000);
        for (new, low, high) in [
            (old.clone(), 100, 100),
            (words(0, 100), 100, 100),
            (old.to_uppercase().replace(' ', "  * "), 100, 100),
            (words(100, 1100), 89, 91),
            (words(500, 1500), 49, 51),
            (words(5000, 6000), 0, 0),
        ] {
            let percent = percent(&new, &old).expect("long enough");
            assert!((low..=high).contains(&percent), "{percent} is not between {low} and {high}");
        }
        assert_eq!(percent("too short to say", &old), None);
    }

    #[test]
    fn only_a_part_of_long_texts_is_compared() {
        let old = words(0, 60_000);
        assert_eq!(percent(&old, &old), Some(100));
        let half = percent(&words(30_000, 90_000), &old).expect("long enough");
        assert!((45..=55).contains(&half), "{half}");
    }

    #[test]
    fn a_text_without_blanks_has_words_too() {
        let text = "この文書は次の担当者のための引き継ぎです。".repeat(3);
        assert_eq!(percent(&text, &text), Some(100));
    }
}
