//! 10,000 requests by four writers at once: how fast the last result is there.

use crate::Length;
use crate::drops::{Arrivals, prepare, round_trip, show};
use crate::place::{Place, Worker, wait_until};
use crate::sample::{median, per_second, rounds};
use crate::table::Row;
use std::path::Path;
use std::time::{Duration, Instant};

const WRITERS: usize = 4;
const EACH: usize = 2_500;

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for round in rounds(length.pick(5, 1), Duration::from_secs(60)) {
        let mut tasuki = || {
            let home = place.home(&format!("flood-{round}"));
            let worker = Worker::tasuki(place, &home);
            ours.push(flood(&home));
            drop(worker);
            place.remove(&home);
        };
        let mut floor = || {
            let home = place.home(&format!("flood-bare-{round}"));
            let worker = Worker::bare(&home);
            wait_until("the bare program is ready", Duration::from_millis(2), || home.join("ready").exists());
            bare.push(flood(&home));
            drop(worker);
            place.remove(&home);
        };
        if round % 2 == 0 {
            tasuki();
            floor();
        } else {
            floor();
            tasuki();
        }
    }
    let (ours, bare) = (median(&ours), median(&bare));
    let ratio = ours / bare;
    vec![Row {
        figure: "10,000 requests by 4 writers until the last result, against a bare batch program".to_owned(),
        ours: per_second(ours),
        rival: per_second(bare),
        ratio: format!("{ratio:.2}"),
        goal: "≥ 0.67".to_owned(),
        met: ratio >= 2.0 / 3.0,
    }]
}

/// Results for each second, from the first rename to the last result.
fn flood(home: &Path) -> f64 {
    let results = Arrivals::into_folder(&home.join("spool/results"));
    round_trip(home, &results, "first");
    let began = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in 0..EACH {
                    let id = format!("writer{writer}-{number:06}");
                    prepare(home, &id);
                    show(home, &id);
                }
            });
        }
        results.wait_for(WRITERS * EACH);
    });
    (WRITERS * EACH) as f64 / began.elapsed().as_secs_f64()
}
