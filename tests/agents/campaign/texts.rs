//! Texts of many kinds, each with a token of its own by which it is found again.

use crate::random::Random;

/// One text.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) kind: &'static str,
    pub(super) body: String,
    /// Stands in it once, and nowhere else.
    pub(super) token: String,
}

type Make = fn(&mut Random, &str) -> String;

/// The kinds; those that stand here twice come more often.
const KINDS: &[(&str, Make)] = &[
    ("line", |_, token| format!("Please look at {token} once more.")),
    ("line", |random, token| format!("Check {token}: {}.", words(random, 12))),
    ("lines", |random, token| lines(random, token, 3)),
    ("lines", |random, token| lines(random, token, 9)),
    ("many lines", |random, token| lines(random, token, 60)),
    ("paragraph", |random, token| format!("{token} {}.", words(random, 300))),
    ("long", |random, token| lines(random, token, 150)),
    ("letters", |_, token| {
        format!("{token}: Grüße aus Köln, 助け合い, Ελλάδα, עברית, 🦀🧰 and \u{201c}quotes\u{201d}.")
    }),
    ("decomposed", |_, token| format!("{token}: u\u{308}ber a\u{308}lter, zero\u{200b}width, so\u{ad}ft, \u{2126}.")),
    ("tabs", |_, token| format!("{token}\n\tcol1\tcol2\n\t\tdeeper\tin\n")),
    ("code", |_, token| format!("{token}\n```rust\nfn main() {{\n    println!(\"{{}}\", 1 < 2 && 3 > 2);\n}}\n```")),
    ("blanks", |_, token| format!("{token}   \n\n\n  two before, three after   \n\n    four.")),
    ("shell", |_, token| format!("{token} $(touch pwned) `id` ; rm -rf x && echo $HOME | cat > y")),
    ("marks", |_, token| format!("{token}\n/help me\n!ls\n# heading\n@nobody here\n- list\n> quoted")),
    ("endings", |_, token| format!("Words before {token}\nends in a backslash \\\nand @word\n/tmp/some/path")),
    ("elements", |_, token| {
        format!("{token} <b>bold</b> <system>none</system> [Pasted text #1 +3 lines] {{\"a\": [1, 2]}}")
    }),
    ("controls", |_, token| format!("{token} a\u{1b}[201~b\u{1b}[31mred\u{7}\u{8}c\u{9b}2J\r\nnext")),
    ("long line", |random, token| format!("{token} {}", "abcdefghij".repeat(40 + small(random, 60)))),
    ("emoji", |random, token| format!("{token} {}", "🦀🧰é".repeat(100 + small(random, 400)))),
    ("numbers", |random, token| {
        (0..small(random, 30) + 2)
            .map(|at| format!("{at}. {token}", token = if at == 0 { token } else { "item" }))
            .collect::<Vec<_>>()
            .join("\n")
    }),
];

/// Makes one.
pub(super) fn make(random: &mut Random, token: String) -> Text {
    let (kind, make) = random.one_of(KINDS);
    let body = make(random, &token);
    Text { kind, body, token }
}

fn small(random: &mut Random, below: u64) -> usize {
    usize::try_from(random.below(below)).expect("it fits")
}

fn words(random: &mut Random, count: usize) -> String {
    const WORDS: [&str; 12] =
        ["parser", "reads", "the", "whole", "input", "before", "it", "says", "what", "was", "wrong,", "twice"];
    (0..count).map(|_| *random.one_of(&WORDS)).collect::<Vec<_>>().join(" ")
}

fn lines(random: &mut Random, token: &str, count: usize) -> String {
    let mut lines = vec![format!("The list for {token}:")];
    for number in 1..count {
        let length = 2 + small(random, 14);
        lines.push(format!("- {number}: {}", words(random, length)));
    }
    lines.join("\n")
}
