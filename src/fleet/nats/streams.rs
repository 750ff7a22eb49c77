//! What the fleet needs at the server: two streams, and two consumers for each host. Also tells how those that are
//! found there differ from that.

use crate::core::host::{FleetName, HostName};
use async_nats::jetstream::consumer::{AckPolicy, IntoConsumerConfig, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, RetentionPolicy, StorageType};
use serde_json::Value;
use std::time::Duration;

/// A day, in seconds.
const DAY_S: u64 = 24 * 3_600;

/// Fields in which a server may differ: names, what the server notes for itself, how many servers keep a copy, and what
/// is the same by another word.
const FREE: [&str; 11] = [
    "name",
    "durable_name",
    "description",
    "num_replicas",
    "metadata",
    "placement",
    "compression",
    "consumer_limits",
    "max_waiting",
    "replay_policy",
    "deliver_policy",
];

/// Fields that must not be set unless the fleet sets them. The same holds for all `allow_…`.
const UNSET: [&str; 27] = [
    "sealed",
    "no_ack",
    "mirror",
    "mirror_direct",
    "sources",
    "subject_transform",
    "deny_purge",
    "deny_delete",
    "republish",
    "max_age",
    "max_msgs",
    "max_consumers",
    "discard_new_per_subject",
    "persist_mode",
    "subject_delete_marker_ttl",
    "max_deliver",
    "deliver_subject",
    "deliver_group",
    "filter_subjects",
    "headers_only",
    "flow_control",
    "idle_heartbeat",
    "rate_limit_bps",
    "sample_freq",
    "inactive_threshold",
    "max_batch",
    "pause_until",
];

/// Fields that hold nanoseconds.
const TIMES: [&str; 3] = ["max_age", "duplicate_window", "ack_wait"];

/// The stream of letters: each stays until it is settled, for 8 days at most.
pub(super) fn letters(fleet: &FleetName, replicas: usize) -> Config {
    Config {
        name: format!("tk_{fleet}_box"),
        subjects: vec![format!("tk.{fleet}.box.*.*.*")],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        max_age: Duration::from_secs(8 * DAY_S),
        max_bytes: 1 << 30,
        max_message_size: 2 << 20,
        discard: DiscardPolicy::New,
        max_messages_per_subject: 1_000,
        discard_new_per_subject: true,
        duplicate_window: Duration::from_secs(120),
        num_replicas: replicas,
        ..Config::default()
    }
}

/// The stream of rosters: the last of each host, and the last member list.
pub(super) fn rosters(fleet: &FleetName, replicas: usize) -> Config {
    Config {
        name: format!("tk_{fleet}_hosts"),
        subjects: vec![format!("tk.{fleet}.host.*")],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        max_messages_per_subject: 1,
        max_bytes: 256 << 20,
        max_message_size: 256 << 10,
        discard: DiscardPolicy::Old,
        deny_delete: true,
        allow_direct: true,
        republish: Some(Republish {
            source: format!("tk.{fleet}.host.*"),
            destination: format!("tk.{fleet}.roster.{{{{wildcard(1)}}}}"),
            headers_only: false,
        }),
        num_replicas: replicas,
        ..Config::default()
    }
}

/// The two consumers that keep a host's letters for it: of requests, and of results.
pub(super) fn consumers(fleet: &FleetName, host: &HostName) -> [pull::Config; 2] {
    [("req", 64), ("res", 256)].map(|(what, at_once)| pull::Config {
        durable_name: Some(format!("{host}-{what}")),
        filter_subject: format!("tk.{fleet}.box.{host}.*.{what}"),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(60),
        max_deliver: -1,
        max_ack_pending: at_once,
        ..pull::Config::default()
    })
}

/// How both streams that were found at the server differ from what the fleet needs, each difference in words.
#[must_use]
pub fn stream_differences(fleet: &FleetName, [found_letters, found_rosters]: [&Value; 2]) -> Vec<String> {
    let pairs = [(letters(fleet, 1), found_letters), (rosters(fleet, 1), found_rosters)];
    let of_one = |(wanted, found): (Config, &Value)| {
        let name = wanted.name.clone();
        let wanted = serde_json::to_value(wanted).expect("a plain value");
        differences(&wanted, found).into_iter().map(move |what| format!("{name}: {what}")).collect::<Vec<_>>()
    };
    pairs.into_iter().flat_map(of_one).collect()
}

/// The same for a host's two consumers.
#[must_use]
pub fn consumer_differences(fleet: &FleetName, host: &HostName, found: [&Value; 2]) -> Vec<String> {
    let of_one = |(wanted, found): (pull::Config, &Value)| {
        let name = wanted.durable_name.clone().unwrap_or_default();
        let wanted = serde_json::to_value(wanted.into_consumer_config()).expect("a plain value");
        differences(&wanted, found).into_iter().map(move |what| format!("{name}: {what}")).collect::<Vec<_>>()
    };
    consumers(fleet, host).into_iter().zip(found).flat_map(of_one).collect()
}

/// Compares what is wanted with what the server has. Fields that only a later version of the server knows count too:
/// all `allow_…` must be off unless they are wanted.
fn differences(wanted: &Value, found: &Value) -> Vec<String> {
    let (Some(fields), Some(found_fields)) = (wanted.as_object(), found.as_object()) else {
        return vec!["it has no configuration".to_owned()];
    };
    let is_set = |name: &str| fields.get(name).is_some_and(|value| !is_unset(value));
    let wanted_ones = fields.iter().filter(|(name, value)| !FREE.contains(&name.as_str()) && !is_unset(value));
    let other = wanted_ones.filter_map(|(name, value)| {
        let seen = found.get(name).unwrap_or(&Value::Null);
        (!is_alike(value, seen)).then(|| format!("{name} is {} instead of {}", shown(name, seen), shown(name, value)))
    });
    let must_be_unset = |name: &str| name.starts_with("allow_") || UNSET.contains(&name);
    let more = found_fields.iter().filter(|(name, value)| must_be_unset(name) && !is_set(name) && !is_unset(value));
    let more = more.map(|(name, value)| format!("{name} is {} and must not be set", shown(name, value)));
    other.chain(more).collect()
}

/// Whether both values say the same. In an object, unset fields do not count.
fn is_alike(wanted: &Value, seen: &Value) -> bool {
    match (wanted.as_object(), seen.as_object()) {
        (Some(wanted), Some(seen)) => {
            let names = wanted.keys().chain(seen.keys());
            let of = |fields: &serde_json::Map<String, Value>, name: &String| {
                fields.get(name).filter(|value| !is_unset(value)).cloned()
            };
            names.into_iter().all(|name| of(wanted, name) == of(seen, name))
        }
        _ => wanted == seen,
    }
}

/// Whether a value says the same as a field that is not there.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => matches!(number.as_i64(), Some(0 | -1)),
        Value::String(text) => text.is_empty() || text == "none" || text == "default",
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    }
}

fn shown(name: &str, value: &Value) -> String {
    match value.as_u64().filter(|_| TIMES.contains(&name)) {
        Some(nanos) => humantime::format_duration(Duration::from_nanos(nanos)).to_string(),
        None if value.is_null() => "not set".to_owned(),
        None => value.to_string(),
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
