//! A start with 100,000 finished handoffs behind it: how much work it is until the first request is answered.

use crate::Length;
use crate::drops::{Arrivals, round_trip};
use crate::history;
use crate::place::{Place, Worker};
use crate::rows;
use crate::sample::{median, rounds};
use crate::table::Row;
use nix::time::{clock_getcpuclockid, clock_gettime};
use std::time::{Duration, Instant};

const HANDOFFS: usize = 100_000;
const GOAL_MS: f64 = 200.0;

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let home = place.home("start");
    let began = Instant::now();
    history::fill(&home, HANDOFFS);
    let bytes = std::fs::metadata(home.join("state/tasuki.redb")).expect("a store").len();
    let mib = bytes as f64 / (1024.0 * 1024.0);
    eprintln!("the store was filled in {:.1} s and has {mib:.0} MiB", began.elapsed().as_secs_f64());
    let results = Arrivals::into_folder(&home.join("spool/results"));
    let (mut work, mut wait) = (Vec::new(), Vec::new());
    for round in rounds(length.pick(7, 3), Duration::from_secs(10)) {
        let began = Instant::now();
        let sidecar = Worker::tasuki(place, &home);
        round_trip(&home, &results, &format!("round-{round}"));
        wait.push(began.elapsed().as_secs_f64() * 1e3);
        work.push(worked_ms(&sidecar));
    }
    place.remove(&home);
    let (work, wait) = (median(&work), median(&wait));
    vec![Row::alone(rows::START, format!("{work:.0} ms, answered after {wait:.0} ms"), work < GOAL_MS)]
}

/// The processor time that a program has used so far, in milliseconds.
pub(crate) fn worked_ms(worker: &Worker) -> f64 {
    let clock = clock_getcpuclockid(worker.pid()).expect("a clock");
    let used = clock_gettime(clock).expect("a time");
    used.tv_sec() as f64 * 1e3 + used.tv_nsec() as f64 / 1e6
}
