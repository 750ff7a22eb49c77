//! What two thousand simulated lives have written and done, as one hash for each hundred of them. Whoever changes the core's
//! shape, and not what it does, sees here that nothing else has changed.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;
use tasuki::core::decision::Decision;
use tasuki::core::time::Now;

/// Lives of which the hashes are kept.
pub(crate) const LIVES: u64 = 2_000;
/// Lives to one hash.
const TOGETHER: usize = 100;

/// All that was committed in one life: journal lines, effects begun and given up, and answers, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Sha256);

impl Trace {
    pub(crate) fn add(&mut self, decision: &Decision) {
        for (seq, line) in &decision.journal {
            self.0.update(format!("journal {seq} {line}\n"));
        }
        for (key, effect) in &decision.effects {
            let effect = serde_json::to_string(effect).expect("an effect can be written down");
            self.0.update(format!("effect {key:?} {effect}\n"));
        }
        for key in &decision.dropped {
            self.0.update(format!("dropped {key:?}\n"));
        }
        for answer in &decision.answers {
            self.0.update(format!("answer {}\n", answer.to_json(&Now { wall_ms: 0, boot: 1, boot_ms: 0 })));
        }
    }

    pub(crate) fn end(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }
}

fn kept_in() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/sim/golden-trace")
}

/// Compares the first lives' traces, in the order of their seeds, with those that are kept.
pub(crate) fn compare(traces: &[[u8; 32]]) {
    let lines = traces.chunks(TOGETHER).enumerate().map(|(hundred, traces)| {
        let hash = Sha256::digest(traces.concat());
        let from = hundred * TOGETHER;
        format!("{from}..{} {}\n", from + traces.len(), tasuki::core::text::hex(&hash[..16]))
    });
    let now: String = lines.collect();
    if std::env::var_os("TASUKI_WRITE_TRACE").is_some() {
        fs::write(kept_in(), &now).expect("the traces can be written");
    }
    let kept = fs::read_to_string(kept_in()).expect("the kept traces");
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
