//! Who owns a pane: two homes may share a server, but never an agent.
//!
//! A pane option holds the home's tag and the agent's process. All homes use the same option, so it keeps other homes
//! out: the guard of every line that types lets it through only while no other home owns the pane. A claim ends by
//! itself, with the process that it names or with its sidecar; nobody has to withdraw it.

use super::guard::Names;
use super::pane::{first, same};
use super::{Error, Tmux};
use crate::core::pane::{PaneRef, Process};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long another home's sidecar may be disconnected before its claims no longer count. A restart takes less.
const AWAY: Duration = Duration::from_secs(5);
/// The pause between two checks whether that sidecar is back.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often a claim is tried when somebody else claims at the same time.
const TRIES: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim<'a> {
    home: &'a str,
    agent: Process,
}

impl<'a> Claim<'a> {
    fn read(text: &'a str) -> Option<Claim<'a>> {
        let mut parts = text.split('.');
        let (home, pid, ticks) = (parts.next()?, parts.next()?, parts.next()?);
        let is_tag = home.len() == 8 && home.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_tag || parts.next().is_some() {
            return None;
        }
        Some(Claim { home, agent: Process { pid: pid.parse().ok()?, start_ticks: ticks.parse().ok()? } })
    }
}

impl Tmux {
    /// Claims a pane for this home, for as long as `agent` lives. Returns the tag of the other home that owns it, if
    /// that home's sidecar is connected to this server and the process of its claim lives; otherwise the pane is ours
    /// from now on. `lives` says whether a process lives. If that home's sidecar is not connected, this waits up to 5 s
    /// until it is.
    ///
    /// # Errors
    /// [`Error::Pane`] when the pane is gone or runs another process; [`Error::NotConnected`] also when other homes
    /// keep changing the claim; else when no server answers.
    pub async fn claim(
        &self,
        pane: &PaneRef,
        agent: Process,
        lives: impl Fn(&Process) -> bool,
    ) -> Result<Option<String>, Error> {
        let names = &self.inner.shared.names;
        let wanted = format!("{}.{}.{}", names.tag(), agent.pid, agent.start_ticks);
        for _ in 0..TRIES {
            let live = self.live().await?;
            let noted = self.noted(&live, pane.pane).await?;
            let before = noted.as_ref().map(|noted| noted.claim.clone()).unwrap_or_default();
            same(pane, noted.map(|noted| noted.row)).map_err(|reason| Error::Pane { pane: *pane, reason })?;
            if before == wanted {
                return Ok(None);
            }
            if let Some(claim) = Claim::read(&before)
                && claim.home != names.tag()
                && lives(&claim.agent)
                && self.is_connected(claim.home).await?
            {
                return Ok(Some(claim.home.to_owned()));
            }
            let mut guard = names.same_pane(&live.fence, pane);
            // A value that is not a claim was written by hand and belongs to no home. It is replaced without a
            // comparison.
            if before.is_empty() || Claim::read(&before).is_some() {
                guard = format!("#{{&&:{guard},#{{==:#{{{}}},{before}}}}}", Names::CLAIM);
            }
            let line =
                format!("if-shell -F -t {pane} \"{guard}\" {{ set-option -p -t {pane} {} {wanted} }}", Names::CLAIM);
            match self.change(&live, line).await {
                Ok(_) | Err(Error::Lost) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::NotConnected("other tasuki homes keep changing the pane's claim".to_owned()))
    }

    /// Whether another home's sidecar is connected to this server, or comes back within [`AWAY`].
    async fn is_connected(&self, home: &str) -> Result<bool, Error> {
        let client = format!("1 {}{home}", Names::SESSIONS);
        let until = Instant::now() + AWAY;
        loop {
            let (_, reply) = self.read("list-clients -F \"#{client_control_mode} #{client_session}\"").await?;
            if first(&reply)?.text().lines().any(|row| row == client) {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_names_a_home_and_a_process() {
        let agent = Process { pid: 77, start_ticks: 5 };
        assert_eq!(Claim::read("00c0ffee.77.5"), Some(Claim { home: "00c0ffee", agent }));
        for other in ["", "00c0ffee", "00c0ffee.77", "00c0ffee.77.5.", "#{pid}xx.1.1", "00c0ffee.x.5", "c0ffee.77.5"] {
            assert_eq!(Claim::read(other), None, "{other}");
        }
    }
}
