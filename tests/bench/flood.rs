//! 2,500 requests by four writers at once: how fast the last result is there. tasuki and the bare program take turns on
//! homes of their own, each at rest while the other works, for the machine changes within seconds.

use crate::Length;
use crate::drops::{Arrivals, prepare, round_trip, show};
use crate::place::{Place, Worker, wait_until};
use crate::rows;
use crate::sample::rounds;
use crate::table::Row;
use std::path::Path;
use std::time::{Duration, Instant};

const WRITERS: usize = 4;
const EACH: usize = 625;
/// What was answered is tidied up and synced by then.
const REST: Duration = Duration::from_millis(300);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let (home, bare_home) = (place.home("flood"), place.home("flood-bare"));
    let (sidecar, bare) = (Worker::tasuki(place, &home), Worker::bare(&bare_home));
    wait_until("the bare program is ready", Duration::from_millis(2), || bare_home.join("ready").exists());
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for round in rounds(length.pick(16, 4), Duration::from_secs(length.pick(120, 20))) {
        let mut turns = [(&home, &mut ours), (&bare_home, &mut floor)];
        if round % 2 == 1 {
            turns.reverse();
        }
        for (home, rates) in turns {
            rates.push(flood(home, round));
            std::thread::sleep(REST);
        }
    }
    drop((sidecar, bare));
    place.remove(&home);
    place.remove(&bare_home);
    vec![Row::rates(rows::FLOOD, &ours, &floor, 2.0 / 3.0)]
}

/// Results for each second, from the first rename to the last result.
pub(crate) fn flood(home: &Path, round: usize) -> f64 {
    let results = Arrivals::into_folder(&home.join("spool/results"));
    round_trip(home, &results, &format!("first-{round}"));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in 0..EACH {
                    let id = format!("round{round}-writer{writer}-{number:06}");
                    prepare(home, &id);
                    show(home, &id);
                }
            });
        }
        results.wait_for(WRITERS * EACH);
    });
    (WRITERS * EACH) as f64 / began.elapsed().as_secs_f64()
}
