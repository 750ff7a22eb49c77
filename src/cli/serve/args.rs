//! The command line of `serve`.

use crate::cli::error::CliError;
use crate::core::text::sanitise;
use clap::Args;
use std::net::{Ipv4Addr, SocketAddr};

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen: a loopback address with a port. Port 0 picks any free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7311")]
    pub listen: String,
    /// Show the other hosts of the fleet on the page too, and send an event when one of them changes.
    #[arg(long)]
    pub all_hosts: bool,
}

impl ServeArgs {
    /// The address to listen on.
    ///
    /// # Errors
    /// Exit code 2 if it is not an address, or if other machines could reach it.
    pub(super) fn address(&self) -> Result<SocketAddr, CliError> {
        let named = sanitise(&self.listen);
        let local = self.listen.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let address = match local {
            Some(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            None => self.listen.parse().map_err(|_| {
                CliError::usage(format!("{named} is not an address with a port."))
                    .hint("Examples: 127.0.0.1:7311, [::1]:0.")
            })?,
        };
        if address.ip().is_loopback() {
            return Ok(address);
        }
        Err(CliError::usage(format!(
            "{named} is not a loopback address: other machines could reach it. The server was not started."
        ))
        .hint("Listen on 127.0.0.1 or [::1]; to connect from another machine, use ssh -L 7311:127.0.0.1:7311."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_listened_on() {
        let address = |text: &str| ServeArgs { listen: text.to_owned(), all_hosts: false }.address();
        for fine in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:7311", "localhost:7311"] {
            assert!(address(fine).is_ok_and(|address| address.ip().is_loopback()), "{fine}");
        }
        for wrong in ["0.0.0.0:7311", "[::]:7311", "192.168.1.1:1", "[::ffff:127.0.0.1]:1", "localhost", "7311", "a:b"]
        {
            assert_eq!(address(wrong).map_err(|error| error.exit), Err(crate::exit::USAGE), "{wrong}");
        }
    }
}
