//! A simulation of a fleet, from seeds, over the real state machines of this folder: three honest hosts, a hostile
//! member, copies of homes, and a courier that loses, repeats, delays, reorders, forges and forgets, and lies about
//! what it has stored. Each life is checked for every promise in `check`.
//!
//! `TASUKI_SEED=<seed>` lives one life again, and prints it if it breaks a promise. Every fourth seed is tried always,
//! the others in the long suites.

mod bridge;
mod check;
mod home;
mod hostile;
mod life;
mod rng;
mod scenes;
mod seal;
mod server;
mod serving;
mod world;

/// Lives all seeds of a range. Reports the first three that break a promise.
fn live_all(seeds: std::ops::Range<u64>, is_real: bool) {
    let variable = |name: &str| std::env::var(name).ok();
    let only = variable("TASUKI_SEED").and_then(|seed| seed.parse::<u64>().ok());
    let seeds = only.map_or(seeds, |seed| seed..seed + 1);
    let is_every = is_real || only.is_some() || variable("TASUKI_LONG").is_some_and(|long| long == "1");
    let seeds = seeds.filter(|seed| is_every || seed.is_multiple_of(4));
    let broken: Vec<String> = seeds.filter_map(|seed| life::live(seed, is_real).err()).take(3).collect();
    assert!(broken.is_empty(), "live one again with TASUKI_SEED=<seed>:\n{}", broken.join("\n\n"));
}

macro_rules! lives {
    ($($name:ident: $from:literal..$to:literal, $is_real:literal;)+) => {
        $(#[test]
        fn $name() {
            live_all($from..$to, $is_real);
        })+
    };
}

lives! {
    every_promise_holds_in_lives_1: 0..2_500, false;
    every_promise_holds_in_lives_2: 2_500..5_000, false;
    every_promise_holds_in_lives_3: 5_000..7_500, false;
    every_promise_holds_in_lives_4: 7_500..10_000, false;
    every_promise_holds_in_lives_5: 10_000..12_500, false;
    every_promise_holds_in_lives_6: 12_500..15_000, false;
    every_promise_holds_in_lives_7: 15_000..17_500, false;
    every_promise_holds_in_lives_8: 17_500..19_700, false;
    every_promise_holds_with_real_seals: 19_700..20_000, true;
}
