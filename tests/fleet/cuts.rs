//! The network between the hosts and the server is away for a while: for one host or for both, in one direction or in
//! both.

use crate::fleet::{TestFleet, check_promises, text};
use crate::proxy::{Proxy, Way};
use crate::support::random::Random;
use crate::support::tally;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Who is cut off, in which direction, for how long.
#[derive(Debug, Clone, Copy)]
struct Cut {
    of_a: bool,
    of_b: bool,
    way: Way,
    time: Duration,
}

/// One cut of each kind, for these times in milliseconds, in an order of the seed's.
fn cuts(times: &[u64], seed: &mut Random) -> Vec<Cut> {
    let ways = [Way::ToServer, Way::FromServer, Way::Both];
    let kinds = ways.iter().flat_map(|way| [(true, false), (false, true), (true, true)].map(|who| (*way, who)));
    let mut kinds: Vec<_> = kinds.collect();
    let one = |time: &u64| {
        let chosen = usize::try_from(seed.below(kinds.len() as u64)).expect("it fits");
        let (way, (of_a, of_b)) = kinds.swap_remove(chosen);
        Cut { of_a, of_b, way, time: Duration::from_millis(*time) }
    };
    times.iter().map(one).collect()
}

/// Two hosts, each behind a proxy of its own.
fn behind_proxies() -> Option<(TestFleet, Proxy, Proxy)> {
    let fleet = TestFleet::joined(&["a", "b"])?;
    let proxied = |name: &str| {
        let proxy = Proxy::before(fleet.server.port);
        let settings = format!("[server]\nurls = [\"tls://127.0.0.1:{}\"]\n", proxy.port);
        fs::write(fleet.host(name).files("fleet.toml"), settings).expect("its settings");
        proxy
    };
    let (of_a, of_b) = (proxied("a"), proxied("b"));
    fleet.hosts.values().for_each(|host| {
        host.start_bridge();
        host.until_serving();
    });
    Some((fleet, of_a, of_b))
}

/// Sends texts to agents of `b` before and during each cut, and holds the promises. `settles`: all of it is answered
/// before the next cut.
fn cut_off(cuts: &[Cut], settles: bool, seed: &mut Random) {
    let Some((fleet, of_a, of_b)) = behind_proxies() else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agents = b.stage.agents(&["kai", "mia", "ben"]);
    let mut sent = Vec::new();
    let send = |sent: &mut Vec<_>| {
        let number = sent.len();
        let (id, agent, words) =
            (format!("t{number}"), agents[number % 3].clone(), format!("text <{number}> of a network that is away"));
        a.drop_to(&id, "b", &text(&agent, &words), Some("2h"));
        sent.push((id, agent, words));
    };
    let until_answered = |sent: &[(String, String, String)]| {
        let start = Instant::now();
        a.until_within(Duration::from_secs(170), "all is answered", || {
            sent.iter().all(|(id, ..)| a.answer(id).is_some())
        });
        println!("  all of {} answered {:.1} s later", sent.len(), start.elapsed().as_secs_f64());
    };
    for cut in cuts {
        let proxies: Vec<&Proxy> = [(cut.of_a, &of_a), (cut.of_b, &of_b)]
            .into_iter()
            .filter_map(|(is_cut, of)| is_cut.then_some(of))
            .collect();
        let breaks = seed.below(2) == 0;
        println!("{cut:?}{}", if breaks { ", then connections break" } else { "" });
        (0..3).for_each(|_| send(&mut sent));
        // Anywhere between the drop and the answer.
        sleep(Duration::from_millis(seed.below(400)));
        proxies.iter().for_each(|proxy| proxy.hold(cut.way));
        let until = Instant::now() + cut.time;
        (0..3).for_each(|_| {
            sleep(cut.time / 4);
            send(&mut sent);
        });
        sleep(until.saturating_duration_since(Instant::now()));
        for proxy in proxies {
            if breaks {
                proxy.break_off();
            }
            proxy.let_pass();
        }
        if settles {
            until_answered(&sent);
        }
    }
    tally::add(tally::FAULTS, cuts.len() as u64);
    until_answered(&sent);
    check_promises(a, b, &sent);
    a.until_nothing_is_open();
}

#[test]
fn a_network_that_is_away_for_seconds_loses_nothing_and_repeats_nothing() {
    let mut seed = Random::from_env();
    let times: Vec<u64> = (0..5).map(|_| 1_000 + seed.below(7_000)).collect();
    cut_off(&cuts(&times, &mut seed), false, &mut seed);
}

/// Up to ten minutes, which is longer than the server, the lease and most time limits wait.
#[test]
fn a_network_that_is_away_for_minutes_loses_nothing_and_repeats_nothing() {
    if !tally::is_long() {
        return tally::skip("a network that is away for minutes: only in the long suite; seconds are tried always");
    }
    let mut seed = Random::from_env();
    let cuts = cuts(&[1, 3, 10, 30, 45, 75, 120, 300, 600].map(|seconds| seconds * 1_000), &mut seed);
    cut_off(&cuts, true, &mut seed);
}
