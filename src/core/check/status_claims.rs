//! Recognises sentences that say that everything is committed or pushed: by pairs of words, and by parts of words in
//! scripts without blanks.

use super::places::has_phrase;

/// Parts of words. Each sentence that can make a claim has at least one of them.
pub(super) const PARTS: [&str; 18] = [
    "clean",
    "commit",
    "push",
    "sync",
    "date",
    "remote",
    "origin",
    "local",
    "sauber",
    "eingecheckt",
    "提交",
    "推送",
    "干净",
    "コミット",
    "プッシュ",
    "クリーン",
    "커밋",
    "푸시",
];

/// A claim that a sentence can make about a repository.
#[derive(Debug)]
pub(super) struct StatusClaim {
    /// A sentence with one of these pairs makes the claim.
    pairs: &'static [Pair],
    /// In scripts without blanks: words for committing or pushing. "All" and "done" must be in the sentence too.
    done: &'static [&'static str],
    /// In scripts without blanks: words for "clean". A word for "work tree" must be in the sentence too.
    clean: &'static [&'static str],
}

/// Two words of a sentence. Between them, only words that do not change the meaning are allowed; see [`BETWEEN`].
#[derive(Debug)]
struct Pair {
    first: &'static [&'static str],
    then: &'static [&'static str],
}

const TREE: [&str; 9] =
    ["tree", "worktree", "directory", "copy", "checkout", "workspace", "status", "repo", "repository"];
const ALL: [&str; 4] = ["all", "everything", "everything's", "fully"];

/// The claim that the work tree has no changes.
pub(super) const CLEAN: StatusClaim =
    StatusClaim {
        pairs: &CLEAN_PAIRS, done: &["提交", "コミット", "커밋"], clean: &["干净", "クリーン"]
    };
/// The claim that the remote has everything.
pub(super) const PUSHED: StatusClaim =
    StatusClaim { pairs: &PUSHED_PAIRS, done: &["推送", "プッシュ", "푸시"], clean: &[] };
/// The claim that something was pushed. That may be an earlier commit, so the claim is only wrong if no remote exists.
pub(super) const PUSHED_SOMETHING: StatusClaim = StatusClaim { pairs: &PUSHED_SOMETHING_PAIRS, done: &[], clean: &[] };

const CLEAN_PAIRS: [Pair; 11] = [
    Pair { first: &["branch"], then: &["clean"] },
    Pair { first: &TREE, then: &["clean"] },
    Pair { first: &["clean"], then: &TREE },
    Pair { first: &ALL, then: &["committed"] },
    Pair { first: &["committed"], then: &["everything", "all"] },
    Pair { first: &["no", "nothing", "zero"], then: &["uncommitted", "unstaged"] },
    Pair { first: &["nothing"], then: &["commit"] },
    Pair { first: &["uncommitted"], then: &["none", "nothing", "0"] },
    Pair { first: &["no", "zero"], then: &["local"] },
    Pair { first: &["alles"], then: &["committet", "commitet", "committed", "eingecheckt"] },
    Pair { first: &["arbeitsverzeichnis", "arbeitsbaum"], then: &["sauber"] },
];
const PUSHED_PAIRS: [Pair; 11] = [
    Pair { first: &ALL, then: &["pushed"] },
    Pair { first: &["pushed"], then: &["everything", "all", "branch"] },
    Pair { first: &["branch", "head"], then: &["pushed"] },
    Pair { first: &["no", "nothing"], then: &["unpushed"] },
    Pair { first: &["unpushed"], then: &["none", "nothing", "0"] },
    Pair { first: &["sync", "synced"], then: &["origin", "remote"] },
    Pair { first: &["date", "up-to-date"], then: &["origin", "remote"] },
    Pair { first: &["my", "all", "everything"], then: &["on"] },
    Pair { first: &["pushed"], then: &["yes", "✅", "✓"] },
    Pair { first: &["alles"], then: &["gepusht", "gepushed"] },
    Pair { first: &["committet"], then: &["gepusht", "gepushed"] },
];
const PUSHED_SOMETHING_PAIRS: [Pair; 4] = [
    Pair { first: &["committed"], then: &["pushed"] },
    Pair { first: &["pushed"], then: &["origin", "remote", "github"] },
    Pair { first: &["branch"], then: &["on"] },
    Pair { first: &["push"], then: &["succeeded", "successful", "worked"] },
];

/// The largest number of words between the two of a pair.
const MOST_BETWEEN: usize = 8;
/// Words between the two of a pair that do not change the meaning.
const BETWEEN: [&str; 42] = [
    "is",
    "are",
    "has",
    "have",
    "been",
    "now",
    "all",
    "fully",
    "completely",
    "already",
    "still",
    "again",
    "and",
    "&",
    "+",
    "the",
    "my",
    "of",
    "this",
    "it",
    "working",
    "work",
    "git",
    "changes",
    "files",
    "edits",
    "code",
    "commits",
    "commit",
    "tags",
    "local",
    "committed",
    "to",
    "with",
    "left",
    "feature",
    "ist",
    "sind",
    "und",
    "wurde",
    "bereits",
    "jetzt",
];
/// Words before "clean tree" that mean any clean tree, as in "start from a clean tree". They do not say that this tree
/// is clean.
const BEFORE_A_TREE: [&str; 8] = ["a", "the", "from", "with", "on", "in", "into", "any"];
/// Words after "committed" that leave the meaning "all is committed". Before another word, as in "all committed
/// records", "committed" only describes that word.
const AFTER: [&str; 14] =
    ["and", "&", "+", "at", "to", "in", "as", "on", "with", "now", "already", "by", "everything", "all"];
/// Unless a sentence begins with "clean tree", one of these words must stand before that, as in "HEAD is 1a2b3c4, clean
/// worktree". Otherwise it may be part of a list of nouns, as in "checks (build, clean worktree)".
const OF_A_STATE: [&str; 14] = [
    "head",
    "branch",
    "status",
    "state",
    "git",
    "is",
    "are",
    "has",
    "have",
    "left",
    "commit",
    "commits",
    "committed",
    "pushed",
];
/// Words after "clean tree" that make it the name of something else, as in "clean tree check".
const KINDS: [&str; 10] =
    ["check", "checks", "requirement", "gate", "test", "tests", "validation", "guard", "policy", "enforcement"];
/// Words anywhere in a sentence that make it a wish, a condition, a question or the opposite.
const NOT_SO: [&str; 79] = [
    "not",
    "never",
    "don't",
    "isn't",
    "aren't",
    "wasn't",
    "hasn't",
    "haven't",
    "cannot",
    "can't",
    "will",
    "would",
    "should",
    "must",
    "need",
    "needs",
    "require",
    "requires",
    "required",
    "ensure",
    "verify",
    "check",
    "confirm",
    "make",
    "until",
    "unless",
    "before",
    "when",
    "once",
    "if",
    "after",
    "from",
    "start",
    "starts",
    "except",
    "but",
    "only",
    "apart",
    "besides",
    "please",
    "want",
    "wants",
    "expects",
    "asked",
    "asks",
    "keep",
    "leave",
    "get",
    "goal",
    "goals",
    "always",
    "rule",
    "rules",
    "aim",
    "tag",
    "tagged",
    "other",
    "another",
    "his",
    "her",
    "their",
    "needed",
    "necessary",
    "lost",
    "nicht",
    "noch",
    "muss",
    "wenn",
    "bevor",
    "sobald",
    "falls",
    "kein",
    "keine",
    "sollte",
    "soll",
    "wird",
    "werden",
    "nur",
    "außer",
];
/// The same in scripts without blanks, and words for other things that can be pushed, such as notifications.
const NOT_SO_PARTS: [&str; 38] = [
    "未",
    "没",
    "尚",
    "需",
    "请",
    "除",
    "如果",
    "若",
    "之前",
    "以前",
    "不",
    "待",
    "将",
    "后",
    "吗",
    "通知",
    "消息",
    "ない",
    "ません",
    "前に",
    "たら",
    "れば",
    "必要",
    "予定",
    "以外",
    "ください",
    "あと",
    "않",
    "안 ",
    "아직",
    "하면",
    "전에",
    "필요",
    "제외",
    "주세요",
    "예정",
    "알림",
    "？",
];

/// Phrases that say how one sees that a goal is reached, not that it is.
const AIMS: [&str; 4] = ["done means", "looks like", "definition of done", "acceptance"];
/// Other things that are committed, pushed or clean.
const OTHER_THINGS: [&str; 10] =
    ["database", "transaction", "transactions", "offset", "offsets", "stack", "queue", "registry", "cache", "bill"];

impl StatusClaim {
    /// Whether a sentence makes this claim, and has no word that denies it.
    pub(super) fn is_in(&self, sentence: &str) -> bool {
        let words = words(sentence);
        let is_part = words.windows(3).any(|three| three[..2] == ["up", "to"] && three[2] != "date");
        let says_otherwise = |word: &&str| NOT_SO.contains(word) || OTHER_THINGS.contains(word);
        let is_aim = || has_phrase(sentence, &AIMS);
        let is_denied = || is_part || sentence.ends_with('?') || words.iter().any(says_otherwise) || is_aim();
        (self.pairs.iter().any(|pair| has_pair(&words, pair)) && !is_denied()) || self.is_in_other_script(sentence)
    }

    fn is_in_other_script(&self, sentence: &str) -> bool {
        const ALL: [&str; 8] = ["所有", "全部", "都已", "均已", "すべて", "全て", "모든", "모두"];
        const IS_DONE: [&str; 9] = ["已", "完成", "済", "しました", "されて", "되었", "됐", "했습", "완료"];
        // The word for "commit" also means to submit a form or an order, so one of these words must be there too.
        const WORK: [&str; 10] =
            ["更改", "改动", "修改", "变更", "代码", "変更", "コミット", "プッシュ", "커밋", "푸시"];
        const TREE: [&str; 6] = ["工作区", "工作树", "工作目录", "作業ツリー", "ワーキングツリー", "ワークツリー"];
        if sentence.is_ascii() || has_phrase(sentence, &NOT_SO_PARTS) {
            return false;
        }
        let is_done = has_phrase(sentence, self.done) && has_phrase(sentence, &ALL) && has_phrase(sentence, &IS_DONE);
        (is_done && has_phrase(sentence, &WORK)) || (has_phrase(sentence, self.clean) && has_phrase(sentence, &TREE))
    }
}

/// Whether a sentence, in small letters, says of something that it was pushed.
pub(super) fn says_pushed(sentence: &str) -> bool {
    let words = words(sentence);
    words.contains(&"pushed") && !sentence.ends_with('?') && !words.iter().any(|word| NOT_SO.contains(word))
}

/// The words of a sentence. After "branch", a name with slashes stays one word.
fn words(sentence: &str) -> Vec<&str> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '|' | '[' | ']');
    let mut words: Vec<&str> = Vec::new();
    for word in sentence.split(is_between) {
        let is_name = words.last() == Some(&"branch") && !word.starts_with("origin/");
        let parts = word.split(|c: char| c == '/' && !is_name);
        let trimmed = parts.map(|part| part.trim_matches(|c: char| c.is_ascii_punctuation() && c != '&' && c != '+'));
        words.extend(trimmed.filter(|part| !part.is_empty()));
    }
    words
}

fn has_pair(words: &[&str], pair: &Pair) -> bool {
    let firsts = words.iter().enumerate().filter(|(_, word)| pair.first.contains(word));
    firsts.into_iter().any(|(at, first)| {
        // A name or a hash may stand between the two words, as in "branch feature/login pushed".
        let most_names = usize::from(matches!(*first, "branch" | "head"));
        let rest = &words[at + 1..];
        let is_between = |word: &&str, then: &str| {
            // "Was pushed" is still true now, but what "was clean" may have changed since.
            BETWEEN.contains(word) || (then != "clean" && matches!(*word, "was" | "were"))
        };
        let names = |gap: usize| rest[..gap].iter().filter(|word| !is_between(word, rest[gap])).count();
        let gap = rest.iter().take(MOST_BETWEEN).position(|word| pair.then.contains(word));
        let Some(gap) = gap.filter(|gap| names(*gap) <= most_names) else { return false };
        let before = words[..at].last();
        let after = rest.get(gap + 1);
        let is_denied = words[at.saturating_sub(3)..at].iter().any(|word| matches!(*word, "no" | "nothing" | "none"));
        let is_any_tree = *first == "clean" && before.is_some_and(|word| BEFORE_A_TREE.contains(word));
        let is_part = rest[gap] == "committed" && after.is_some_and(|word| !AFTER.contains(word));
        let says_how_it_is = *first != "clean"
            || (at == 0 || words[..at].iter().any(|word| OF_A_STATE.contains(word)))
                && after.is_none_or(|word| !KINDS.contains(word));
        !is_denied && !is_any_tree && !is_part && says_how_it_is && is_as_meant(&rest[..=gap], &rest[gap + 1..])
    })
}

/// Whether the second word of a pair has the meaning of the claim, by the words around it. `until` ends with that word,
/// and `after` holds the words after it. So "local" must stand before "changes", and "on" before "remote".
fn is_as_meant(until: &[&str], after: &[&str]) -> bool {
    const REMAIN: [&str; 9] = ["remain", "remaining", "left", "exist", "outstanding", "pending", "and", "or", "are"];
    const MACHINES: [&str; 7] = ["server", "machine", "host", "box", "desktop", "device", "side"];
    let word = |at: usize| after.get(at).copied();
    match until {
        [.., "local"] => {
            matches!(word(0), Some("changes" | "edits" | "modifications"))
                && word(1).is_none_or(|it| REMAIN.contains(&it))
        }
        [.., before, "on"] => {
            let at = usize::from(word(0) == Some("the"));
            matches!(*before, "is" | "are" | "now" | "already" | "also" | "all" | "exists" | "lives")
                && matches!(word(at), Some("remote" | "origin" | "github"))
                && word(at + 1).is_none_or(|it| !MACHINES.contains(&it))
        }
        [.., "on"] => false,
        _ => true,
    }
}
