//! From the rename of a request to its result, one at a time.

use crate::Length;
use crate::drops::{Arrivals, round_trip};
use crate::place::{Place, Worker, wait_until};
use crate::rows;
use crate::sample::rounds;
use crate::table::Row;
use std::time::Duration;

/// Between two requests, so that each meets a program at rest.
const REST: Duration = Duration::from_millis(4);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let (home, bare_home) = (place.home("latency"), place.home("latency-bare"));
    let (sidecar, bare) = (Worker::tasuki(place, &home), Worker::bare(&bare_home));
    wait_until("the bare program is ready", REST, || bare_home.join("ready").exists());
    let results = Arrivals::into_folder(&home.join("spool/results"));
    let bare_results = Arrivals::into_folder(&bare_home.join("spool/results"));
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    let (warm, count) = (5, length.pick(1_500, 300));
    for round in rounds(warm + count, Duration::from_secs(length.pick(60, 12))) {
        let id = format!("round-{round:06}");
        let (one, two);
        if round % 2 == 0 {
            one = round_trip(&home, &results, &id);
            std::thread::sleep(REST);
            two = round_trip(&bare_home, &bare_results, &id);
        } else {
            two = round_trip(&bare_home, &bare_results, &id);
            std::thread::sleep(REST);
            one = round_trip(&home, &results, &id);
        }
        std::thread::sleep(REST);
        if round >= warm {
            ours.push(one);
            floor.push(two);
        }
    }
    drop((sidecar, bare));
    place.remove(&home);
    place.remove(&bare_home);
    vec![
        Row::times(rows::LATENCY_P50, &ours, &floor, 0.5, 1.5),
        Row::times(rows::LATENCY_P99, &ours, &floor, 0.99, 1.5),
    ]
}
