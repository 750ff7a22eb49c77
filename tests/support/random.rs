//! Random numbers that a seed repeats.

/// A generator of random numbers (splitmix64).
pub(crate) struct Random {
    /// The seed that it began with, for messages.
    pub(crate) seed: u64,
    state: u64,
}

impl Random {
    /// A generator with the seed in `TASUKI_SEED`, or else one from the clock. Prints the seed.
    pub(crate) fn from_env() -> Random {
        let given = std::env::var("TASUKI_SEED").ok().and_then(|text| text.parse().ok());
        let clock =
            || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_nanos());
        let seed = given.unwrap_or_else(|| u64::try_from(clock() % u128::from(u32::MAX)).expect("it fits"));
        println!("seed {seed}: TASUKI_SEED={seed} plays it again");
        Random::of(seed)
    }

    /// A generator with this seed.
    pub(crate) fn of(seed: u64) -> Random {
        Random { seed, state: seed }
    }

    /// A number from 0 to `bound` - 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    /// One of these values.
    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).expect("it fits")]
    }
}
