//! Which address of the fleet's servers is tried next. A client can leave a server that lets it log in and answers
//! nothing: then it tries the other addresses first.

use async_nats::{ReconnectToServer, Server, ServerAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The attempts of one client since its last connection.
#[derive(Debug, Default)]
pub(super) struct AddressChoice(Mutex<Attempts>);

#[derive(Debug, Default)]
struct Attempts {
    /// How many addresses were tried since the last connection.
    count: usize,
    /// The address that was tried last. While the connection stands, it leads to the server.
    last: Option<ServerAddr>,
    /// The address of the server that the client has left.
    left: Option<ServerAddr>,
}

impl AddressChoice {
    /// The address with the fewest failures in a row: by chance one of several. An address that was left is tried after
    /// all others.
    pub(super) fn next(&self, servers: &[Server]) -> Option<ReconnectToServer> {
        let mut attempts = self.lock();
        let left = attempts.left.clone().filter(|_| attempts.count + 1 < servers.len());
        let order = |server: &&Server| (left.as_ref() == Some(&server.addr), server.failed_attempts, Uuid::new_v4());
        let addr = servers.iter().min_by_key(order)?.addr.clone();
        attempts.count += 1;
        attempts.last = Some(addr.clone());
        Some(ReconnectToServer { addr, delay: None })
    }

    /// The connection stands.
    pub(super) fn connected(&self) {
        let mut attempts = self.lock();
        attempts.count = 0;
        attempts.left = None;
    }

    /// The client leaves the server that it is connected to.
    pub(super) fn leave(&self) {
        let mut attempts = self.lock();
        attempts.count = 0;
        attempts.left = attempts.last.clone();
    }

    /// The address that was tried last, such as `10.0.0.1:4222` or `[fd00::1]:4222`, without a user's name.
    pub(super) fn tried_last(&self) -> Option<String> {
        let attempts = self.lock();
        let (host, port) = attempts.last.as_ref().map(|addr| (addr.host(), addr.port()))?;
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    /// Whether all addresses (`addresses`: how many there are) were tried equally often since the last connection.
    /// A client that has reached no address of a round has something to tell.
    pub(super) fn is_round_over(&self, addresses: usize) -> bool {
        self.lock().count.is_multiple_of(addresses.max(1))
    }

    fn lock(&self) -> MutexGuard<'_, Attempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(failed: &[usize]) -> Vec<Server> {
        let one = |(number, failed_attempts): (usize, &usize)| Server {
            addr: format!("tls://10.0.0.{number}:4222").parse().expect("an address"),
            failed_attempts: *failed_attempts,
            did_connect: true,
            is_discovered: false,
            last_error: None,
        };
        failed.iter().enumerate().map(one).collect()
    }

    fn number(servers: &[Server], choice: &AddressChoice) -> usize {
        let next = choice.next(servers).expect("an address");
        assert_eq!(next.delay, None, "the pause is that of every attempt");
        servers.iter().position(|server| server.addr == next.addr).expect("one of them")
    }

    #[test]
    fn each_address_is_tried_once_a_round_and_the_first_one_by_chance() {
        let choice = AddressChoice::default();
        let mut all = servers(&[0, 0, 0]);
        let mut tried: Vec<usize> = (0..3)
            .map(|_| {
                assert_eq!(choice.is_round_over(3), choice.lock().count == 0);
                let tried = number(&all, &choice);
                all[tried].failed_attempts += 1;
                tried
            })
            .collect();
        assert!(choice.is_round_over(3));
        tried.sort_unstable();
        assert_eq!(tried, [0, 1, 2]);
        let firsts: std::collections::BTreeSet<usize> = (0..200).map(|_| number(&all, &choice)).collect();
        assert_eq!(firsts.len(), 3);
    }

    #[test]
    fn a_server_that_was_left_is_tried_after_all_others_and_then_as_before() {
        let choice = AddressChoice::default();
        let mut all = servers(&[0, 7, 9]);
        assert_eq!(number(&all, &choice), 0);
        choice.connected();
        choice.leave();
        // The others fail.
        for other in [1, 2] {
            assert_eq!(number(&all, &choice), other);
            all[other].failed_attempts += 5;
        }
        assert_eq!(number(&all, &choice), 0);
        choice.connected();
        assert_eq!(number(&all, &choice), 0, "the next connection breaks by itself");
    }

    #[test]
    fn the_address_that_was_tried_last_is_named() {
        for (url, named) in [
            ("tls://10.0.0.1:4222", "10.0.0.1:4222"),
            ("tls://[fd00::1]:5222", "[fd00::1]:5222"),
            ("wss://kai:secret@fleet.example/nats", "fleet.example:443"),
        ] {
            let (choice, mut all) = (AddressChoice::default(), servers(&[0]));
            assert_eq!(choice.tried_last(), None);
            all[0].addr = url.parse().expect("an address");
            assert_eq!(number(&all, &choice), 0);
            assert_eq!(choice.tried_last().as_deref(), Some(named));
        }
    }

    #[test]
    fn the_only_address_is_tried_again_at_once() {
        let choice = AddressChoice::default();
        let all = servers(&[0]);
        for _ in 0..3 {
            assert_eq!(number(&all, &choice), 0);
            choice.connected();
            choice.leave();
        }
    }
}
