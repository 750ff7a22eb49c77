//! What two thousand simulated lives have written and done, as one hash for each hundred of them. Whoever changes the
//! core's shape, and not what it does, sees here that nothing else has changed.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use tasuki::core::decision::Decision;
use tasuki::core::time::Now;

/// Lives of which the hashes are kept.
pub(crate) const LIVES: u64 = 2_000;
/// Lives to one hash.
const TOGETHER: usize = 100;

/// All that was committed in one life: journal lines, effects begun and given up, and answers, in their order.
///
/// With `TASUKI_TRACES=FOLDER` each life's lines are written there too, a file for each seed: two such folders show
/// what a change has changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    hash: Sha256,
    shown_in: Option<PathBuf>,
}

impl Trace {
    pub(crate) fn of(seed: u64) -> Trace {
        let folder = std::env::var_os("TASUKI_TRACES").map(PathBuf::from);
        Trace { hash: Sha256::default(), shown_in: folder.map(|folder| folder.join(seed.to_string())) }
    }

    pub(crate) fn add(&mut self, decision: &Decision) {
        let mut lines = String::new();
        for (seq, line) in &decision.journal {
            let _ = writeln!(lines, "journal {seq} {line}");
        }
        for (key, pending) in &decision.effects {
            let effect = serde_json::to_string(&pending.effect).expect("an effect can be written down");
            let _ = writeln!(lines, "effect {key:?} {effect}");
        }
        for key in &decision.dropped {
            let _ = writeln!(lines, "dropped {key:?}");
        }
        for answer in &decision.answers {
            let _ = writeln!(lines, "answer {}", answer.to_json(&Now { wall_ms: 0, boot: 1, boot_ms: 0 }));
        }
        self.hash.update(&lines);
        if let Some(path) = &self.shown_in {
            let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("a file for the trace");
            file.write_all(lines.as_bytes()).expect("the trace can be written");
        }
    }

    pub(crate) fn end(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }
}

/// What is kept under that name beside this file; written anew first where that is asked for.
pub(crate) fn kept(name: &str, now: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/sim").join(name);
    if std::env::var_os("TASUKI_WRITE_TRACE").is_some() {
        fs::write(&path, now).expect("it can be written");
    }
    fs::read_to_string(&path).expect("what is kept")
}

/// Compares the first lives' traces, in the order of their seeds, with those that are kept.
pub(crate) fn compare(traces: &[[u8; 32]]) {
    let lines = traces.chunks(TOGETHER).enumerate().map(|(hundred, traces)| {
        let hash = Sha256::digest(traces.concat());
        let from = hundred * TOGETHER;
        format!("{from}..{} {}\n", from + traces.len(), tasuki::core::text::hex(&hash[..16]))
    });
    let now: String = lines.collect();
    let kept = kept("golden-trace", &now);
    let other: Vec<&str> = now
        .lines()
        .zip(kept.lines().chain(std::iter::repeat("")))
        .filter(|(now, kept)| now != kept)
        .map(|(now, _)| now)
        .collect();
    assert!(
        other.is_empty(),
        "these lives write or do something else than before: {other:#?}\nIf that is meant, say in the commit what has \
         changed, and run this test with TASUKI_WRITE_TRACE=1"
    );
}
