//! The two lines by which a host is admitted: the key line, which the newcomer prints, and the ticket, which the owner
//! prints. Neither is a secret.

use super::folder::FleetFolder;
use super::identity::{CA, HostFile, JWT, JoinedFleet};
use crate::cli::error::CliError;
use crate::core::host::{FleetName, HomeId, HostName};
use crate::files::Grade;
use crate::fleet::{AccountKey, BoxKey, HostKeys, UserKey};
use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};

/// The longest ticket or key line, in bytes.
const MOST_LINE: usize = 64 << 10;

/// The ticket: what the owner gives to a newcomer, so that it can join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ticket {
    /// The fleet.
    pub(crate) fleet: FleetName,
    /// The fleet's key, which signs the list of members.
    pub(crate) fleet_key: AccountKey,
    /// The server's addresses.
    pub(crate) servers: Vec<String>,
    /// The certificate of the server's authority; none if the system knows that authority.
    pub(crate) ca: Option<String>,
    /// The domain of the server's streams; empty if they have none.
    pub(crate) domain: String,
    /// The newcomer's claims, by which the server lets it log in.
    pub(crate) jwt: String,
}

/// The key line, which a newcomer prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyLine {
    /// The newcomer's name.
    pub(crate) name: HostName,
    /// The id of its home.
    pub(crate) home_id: HomeId,
    /// The key that it signs with.
    pub(crate) user_key: UserKey,
    /// The key that letters to it are sealed to.
    pub(crate) box_key: BoxKey,
}

/// Writes what a ticket says into this host's files: fleet, server, claims. From then on the host is a member.
///
/// # Errors
/// The system's.
pub(crate) fn save_ticket(folder: &FleetFolder, host: &HostFile, ticket: &Ticket) -> Result<(), CliError> {
    match &ticket.ca {
        Some(ca) => folder.write("", CA, ca.as_bytes(), Grade::Durable)?,
        // A certificate that is left from an earlier ticket does not belong to this server.
        None => folder.remove("", CA)?,
    }
    folder.write("", JWT, ticket.jwt.as_bytes(), Grade::Durable)?;
    let Ticket { fleet: name, fleet_key: key, servers, domain, .. } = ticket.clone();
    HostFile { fleet: Some(JoinedFleet { name, key, servers, domain }), ..host.clone() }.save(folder)
}

impl Ticket {
    /// The ticket as a line of text.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        format!("tkf1.{}", BASE64URL_NOPAD.encode(&serde_json::to_vec(self).expect("a plain value")))
    }

    /// Reads the line of a ticket; none if it is not one.
    #[must_use]
    pub(crate) fn read(line: &str) -> Option<Ticket> {
        let text = line.trim().strip_prefix("tkf1.").filter(|text| text.len() <= MOST_LINE)?;
        serde_json::from_slice(&BASE64URL_NOPAD.decode(text.as_bytes()).ok()?).ok()
    }
}

impl KeyLine {
    /// The key line of a host.
    #[must_use]
    pub(crate) fn of(host: &HostFile, keys: &HostKeys) -> KeyLine {
        let (user_key, box_key) = (keys.user_key(), keys.box_key());
        KeyLine { name: host.name.clone(), home_id: host.home_id, user_key, box_key }
    }

    /// The key line as text.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        format!("tkk1.{}.{}.{}.{}", self.name, self.home_id, self.user_key, self.box_key)
    }

    /// Reads a key line; none if the text is not one.
    #[must_use]
    pub(crate) fn read(line: &str) -> Option<KeyLine> {
        let text = line.trim().strip_prefix("tkk1.").filter(|text| text.len() <= MOST_LINE)?;
        let mut words = text.split('.');
        let (name, home_id) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (user_key, box_key) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(KeyLine { name, home_id, user_key, box_key })
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::super::identity::{KEY, Membership, save_keys};
    use super::super::settings::FleetSettings;
    use super::*;
    use crate::fleet::FleetKeys;
    use proptest::prelude::*;

    fn ticket() -> Ticket {
        Ticket {
            fleet: "home".parse().expect("a name"),
            fleet_key: FleetKeys::generate().account_key(),
            servers: vec!["tls://10.0.0.1:4222".to_owned()],
            ca: Some("certificate".to_owned()),
            domain: "hub".to_owned(),
            jwt: "a.b.c".to_owned(),
        }
    }

    #[test]
    fn a_ticket_and_a_key_line_are_read_as_they_were_written() {
        let (host, keys) = (HostFile::new("box".parse().expect("a name")), HostKeys::generate());
        let line = KeyLine::of(&host, &keys);
        assert_eq!(KeyLine::read(&format!("{}\n", line.line())), Some(line.clone()));
        assert!(KeyLine::read(&format!("{}.more", line.line())).is_none());
        let ticket = ticket();
        assert_eq!(Ticket::read(&ticket.line()), Some(ticket));
    }

    #[test]
    fn a_host_is_a_member_once_it_has_a_key_and_a_ticket() {
        let (_dir, _, folder) = of_test();
        let settings = FleetSettings::default();
        assert_eq!(Membership::load(&folder, &settings).expect_err("none yet").code, "no_fleet");
        let (host, keys) = (HostFile::new("box".parse().expect("a name")), HostKeys::generate());
        host.save(&folder).expect("saved");
        save_keys(&folder, &keys).expect("saved");
        assert_eq!(Membership::load(&folder, &settings).expect_err("no fleet yet").code, "no_fleet");
        save_ticket(&folder, &host, &ticket()).expect("saved");
        let member = Membership::load(&folder, &settings).expect("a member");
        assert_eq!((member.keys.user_key(), member.jwt.as_str()), (keys.user_key(), "a.b.c"));
        let access = member.access(&folder, &settings).expect("encrypted");
        assert_eq!((access.domain.as_str(), access.ca), ("hub", Some(folder.path("", CA))));
        save_ticket(&folder, &host, &Ticket { ca: None, ..ticket() }).expect("saved");
        assert!(!folder.path("", CA).exists(), "the certificate of the earlier ticket");
        std::fs::write(folder.path("", KEY), "SUABC\n").expect("written");
        assert_eq!(Membership::load(&folder, &settings).expect_err("a bad key").code, "bad_key");
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_panic(text in "(tkk1|tkf1)?\\.?[A-Za-z0-9_.-]{0,200}|\\PC{0,100}") {
            let _ = KeyLine::read(&text);
            let _ = Ticket::read(&text);
        }
    }
}
