//! The time at which a limit ends, as agent CLIs write it: a time of day, a date, a duration, seconds since 1970.

use super::zone;
use chrono::{DateTime, Datelike, Duration, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use regex::{Captures, Regex};
use serde_json::Value;
use std::sync::LazyLock;

/// The clock and the zone by which times in a text are read.
#[derive(Debug, Clone, Copy)]
pub struct ReadingTime {
    /// The wall clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// Times without a zone are in UTC, and not in the zone of this machine.
    pub is_utc: bool,
}

/// CLIs round a time of day down to the minute. This is added to make up for it, in milliseconds.
const ROUNDED_MS: i64 = 60_000;
/// Numbers below this are seconds since 1970, others milliseconds.
const FIRST_MS: f64 = 1e11;

/// What stands before a time of day or a date.
const BEFORE: &str = r"(?:resets?|reset at|resets at|again at|automatically at|access on|available at)";
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// What may stand behind a time of day: ` UTC`, ` (UTC)`, ` (America/Los_Angeles)`.
const ZONE: &str = r"(?:,? (?:(?<utc>UTC)\b|\((?<zone>utc|(?-i:[A-Z])[\w+-]*(?:/[\w/+-]*|\)))))?";

fn pattern(text: &str) -> Regex {
    Regex::new(&text.replace("BEFORE", BEFORE).replace("ZONE", ZONE)).expect("a regular expression that is tested")
}

static EPOCH: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:\||\bat )(?<epoch>1\d{9}(?:\d{3})?)\b"));
static ISO: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)BEFORE (?<date>\d{4}-\d\d-\d\d) at (?<h>\d\d):(?<m>\d\d)ZONE"));
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)BEFORE (?<month>[a-z]{3})[a-z]* (?<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?<year>\d{4}),?)?(?: at)? (?<h>\d{1,2})(?::(?<m>\d\d))?[ \x{202f}]?(?<half>[ap]m)?ZONE",
    )
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)BEFORE (?:(?<h>\d{1,2}):(?<m>\d\d)[ \x{202f}]?(?<half>[ap]m)?|(?<h12>\d{1,2})[ \x{202f}]?(?<half12>[ap]m))ZONE",
    )
});
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:again in|resets? in|reset after|retry in|retrying in|retry after|wait) ~?(?<parts>(?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|months?|weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|min|m|seconds?|secs?|s)\b?,? ?(?:and )?)+)",
    )
});
static PART: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?<n>\d+(?:\.\d+)?) ?(?<unit>ms|mil|mo|[wdhms])"));

/// The time that a text names, in milliseconds since 1970.
#[must_use]
pub fn in_text(text: &str, clock: &ReadingTime) -> Option<i64> {
    let epoch = || EPOCH.captures(text).and_then(|found| of_number(found["epoch"].parse().ok()?));
    let iso = || ISO.captures(text).and_then(|found| iso(&found, clock));
    let date = || DATE.captures(text).and_then(|found| date(&found, clock));
    let time = || TIME.captures(text).and_then(|found| time(&found, clock));
    let duration = || DURATION.captures(text).and_then(|found| duration(&found["parts"], clock));
    epoch().or_else(iso).or_else(date).or_else(time).or_else(duration)
}

/// The time that a JSON value names, in milliseconds since 1970: a number of seconds or milliseconds, or a date.
#[must_use]
pub fn of_value(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => of_number(number.as_f64()?),
        Value::String(text) => {
            let number = text.parse().ok().and_then(of_number);
            number.or_else(|| DateTime::parse_from_rfc3339(text).ok().map(|at| at.timestamp_millis()))
        }
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a time that is out of bounds is none")]
fn of_number(number: f64) -> Option<i64> {
    let ms = if number < FIRST_MS { number * 1000.0 } else { number };
    (ms > 0.0 && ms < 1e14).then_some(ms as i64)
}

fn iso(found: &Captures<'_>, clock: &ReadingTime) -> Option<i64> {
    let date = NaiveDate::parse_from_str(&found["date"], "%Y-%m-%d").ok()?;
    let time = NaiveTime::from_hms_opt(found["h"].parse().ok()?, found["m"].parse().ok()?, 0)?;
    in_zone(date.and_time(time), is_utc(found, clock)?)
}

fn date(found: &Captures<'_>, clock: &ReadingTime) -> Option<i64> {
    let is_utc = is_utc(found, clock)?;
    let month = found["month"].to_lowercase();
    let month = u32::try_from(MONTHS.iter().position(|name| *name == month)? + 1).ok()?;
    let today = today(clock, is_utc)?;
    let year = found.name("year").and_then(|year| year.as_str().parse().ok());
    let day = found["day"].parse().ok()?;
    let time = of_day(&found["h"], found.name("m").map(|m| m.as_str()), found.name("half").map(|half| half.as_str()))?;
    let at = |year: i32| in_zone(NaiveDate::from_ymd_opt(year, month, day)?.and_time(time), is_utc);
    match year {
        Some(year) => at(year),
        // In December a date in January belongs to the next year.
        None => at(today.year()).filter(|at| *at > clock.now_ms - 7 * 86_400_000).or_else(|| at(today.year() + 1)),
    }
    .map(|at| at + ROUNDED_MS)
}

/// A time of day without a date is the next such time.
fn time(found: &Captures<'_>, clock: &ReadingTime) -> Option<i64> {
    let is_utc = is_utc(found, clock)?;
    let text = |name: &str| found.name(name).map(|found| found.as_str());
    let time = of_day(text("h").or(text("h12"))?, text("m"), text("half").or(text("half12")))?;
    let today = today(clock, is_utc)?;
    let days = [today, today.succ_opt()?];
    let times = days.into_iter().filter_map(|day| in_zone(day.and_time(time), is_utc));
    times.map(|at| at + ROUNDED_MS).find(|at| *at > clock.now_ms)
}

fn of_day(hour: &str, minute: Option<&str>, half: Option<&str>) -> Option<NaiveTime> {
    let hour: u32 = hour.parse().ok()?;
    let minute = minute.map_or(Some(0), |minute| minute.parse().ok())?;
    let hour = match half.map(str::to_lowercase).as_deref() {
        Some("am") if (1..=12).contains(&hour) => hour % 12,
        Some("pm") if (1..=12).contains(&hour) => hour % 12 + 12,
        Some(_) => return None,
        None => hour,
    };
    NaiveTime::from_hms_opt(hour, minute, 0)
}

/// The time that is this duration away from now.
fn duration(parts: &str, clock: &ReadingTime) -> Option<i64> {
    let mut seconds = 0.0;
    for part in PART.captures_iter(parts) {
        let number: f64 = part["n"].parse().ok()?;
        seconds += number
            * match part["unit"].to_lowercase().as_str() {
                "ms" | "mil" => 0.001,
                "mo" => 2_592_000.0,
                "w" => 604_800.0,
                "d" => 86_400.0,
                "h" => 3_600.0,
                "m" => 60.0,
                _ => 1.0,
            };
    }
    let ms = Duration::try_milliseconds(of_number(seconds)?)?.num_milliseconds();
    clock.now_ms.checked_add(ms)
}

/// Whether a time is in UTC; if not, it is in the zone of this machine. None if it is in another zone, whose rules
/// tasuki does not know: no time is better than a time that is wrong by hours.
fn is_utc(found: &Captures<'_>, clock: &ReadingTime) -> Option<bool> {
    match found.name("zone").map(|zone| zone.as_str().trim_end_matches(')')) {
        None => Some(clock.is_utc || found.name("utc").is_some()),
        Some(zone) if zone::is_utc(zone) => Some(true),
        Some(zone) => zone::is_here(zone).then_some(false),
    }
}

fn today(clock: &ReadingTime, is_utc: bool) -> Option<NaiveDate> {
    let now = Utc.timestamp_millis_opt(clock.now_ms).single()?;
    Some(if is_utc { now.date_naive() } else { now.with_timezone(&Local).date_naive() })
}

fn in_zone(at: NaiveDateTime, is_utc: bool) -> Option<i64> {
    if is_utc {
        return Some(at.and_utc().timestamp_millis());
    }
    // When summer time ends, an hour comes twice. The later one counts, so that nobody continues too early.
    Local.from_local_datetime(&at).latest().map(|at| at.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::rfc3339;

    /// 2026-11-25 13:24 UTC.
    const NOW: i64 = 1_795_613_040_000;

    fn at(text: &str) -> Option<String> {
        in_text(text, &ReadingTime { now_ms: NOW, is_utc: true }).map(|at| rfc3339(at).replace(":00.000Z", ""))
    }

    #[test]
    fn each_cli_s_way_to_say_it_is_read() {
        let cases = [
            ("You've hit your 5-hour limit · resets 3:24pm (UTC)", "2026-11-25T15:25"),
            ("You've hit your limit · resets 3pm", "2026-11-25T15:01"),
            ("resets 1am (UTC)", "2026-11-26T01:01"),
            ("resets 12am", "2026-11-26T00:01"),
            ("You've hit your weekly limit · resets Nov 28, 1:24pm (UTC)", "2026-11-28T13:25"),
            ("resets Jan 24, 2027, 2:28pm (UTC)", "2027-01-24T14:29"),
            ("resets Jan 3, 2pm", "2027-01-03T14:01"),
            ("resets Oct 20 at 5pm (UTC)", "2027-10-20T17:01"),
            ("You will regain access on 2026-12-01 at 00:00 UTC.", "2026-12-01T00:00"),
            ("or try again at 2:24 PM.", "2026-11-25T14:25"),
            ("Try again at Nov 28th, 2026 5:24 PM.", "2026-11-28T17:25"),
            ("try again in 3 days 4 hours", "2026-11-28T17:24"),
            ("Try again in ~60 min.", "2026-11-25T14:24"),
            ("Access resets at 6:54\u{202f}AM UTC.", "2026-11-26T06:55"),
            ("Your quota will reset after 17h26m", "2026-11-26T06:50"),
            ("Please retry in 2m0s.", "2026-11-25T13:26"),
            ("It will reset in 2 hours 5 minutes. To continue", "2026-11-25T15:29"),
            ("[retrying in 1h 59m attempt #1]", "2026-11-25T15:23"),
            ("[retrying in ~2 days attempt #1]", "2026-11-27T13:24"),
            ("usage limit reached|1795620000", "2026-11-25T15:20"),
            ("resets at 15:20", "2026-11-25T15:21"),
            ("It will reset in 1 month.", "2026-12-25T13:24"),
            ("resets 3pm (Etc/UTC)", "2026-11-25T15:01"),
            ("resets 3pm, UTC", "2026-11-25T15:01"),
            ("resets 3pm (or try again in 2 hours)", "2026-11-25T15:01"),
        ];
        for (text, expected) in cases {
            assert_eq!(at(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_names_nothing_is_none() {
        for text in
            ["", "Try again later.", "resets 25pm", "resets at 27:61", "resets Foo 3, 2pm", "call 5551234567890"]
        {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_in_a_zone_of_elsewhere_is_none() {
        for zone in ["(Mars/Olympus_Mons)", "(Mars/", "(XYZ)", "(Mars/A/B-C)"] {
            for time in ["resets 3pm", "resets Nov 28, 1:24pm", "resets Oct 20 at 5pm", "access on 2026-12-01 at 00:00"]
            {
                assert_eq!(at(&format!("You've hit your limit · {time} {zone}")), None, "{time} {zone}");
            }
        }
        let clock = ReadingTime { now_ms: NOW, is_utc: false };
        for name in ["Asia/Tokyo", "America/Los_Angeles"] {
            let here = in_text("resets 3pm", &clock).filter(|_| zone::is_here(name));
            assert_eq!(in_text(&format!("resets 3pm ({name})"), &clock), here, "{name}");
        }
    }

    #[test]
    fn numbers_and_dates_are_read() {
        let of = |value: Value| of_value(&value).map(rfc3339);
        for value in
            [1_795_620_000.into(), 1_795_620_000_000_i64.into(), "1795620000".into(), "2026-11-25T15:20:00Z".into()]
        {
            assert_eq!(of(value).as_deref(), Some("2026-11-25T15:20:00.000Z"));
        }
        for value in [Value::Null, "soon".into(), (-3).into(), 1e300.into()] {
            assert_eq!(of(value), None);
        }
    }
}
