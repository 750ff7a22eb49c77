//! Where a handoff's document is published: at the target that a request names, or else at the default of the persona
//! or of config.toml.

use crate::core::persona::{PersonaFacts, PublishDefault};
use crate::core::reply::Refused;
use crate::core::request::{Fallback, Issue, PublishChoice, PublishRequest, PublishTarget, publish_target};
use crate::core::rows::publishing::Publishing;
use crate::core::tx::Tx;

/// Checks what a request for a handoff says about publishing.
pub(super) fn check(tx: &Tx<'_>, asked: Option<&PublishChoice>) -> Result<(), Refused> {
    match asked {
        Some(PublishChoice::To(asked)) => named(tx, "publish", asked).map(|_| ()),
        Some(PublishChoice::No) | None => Ok(()),
    }
}

/// How the document of a new handoff is to be published; `None` if it is not. The caller has checked the request with
/// [`check`].
pub(super) fn chosen(tx: &Tx<'_>, asked: Option<&PublishChoice>, persona: &PersonaFacts) -> Option<Publishing> {
    match asked {
        Some(PublishChoice::To(asked)) => named(tx, "publish", asked).ok(),
        Some(PublishChoice::No) => None,
        None => default_of(tx, persona),
    }
}

/// The target that a request names in `field`. Refuses an issue on a host that the configuration does not list, because
/// `gh` would send its token to that host.
pub(super) fn named(tx: &Tx<'_>, field: &str, asked: &PublishRequest) -> Result<Publishing, Refused> {
    let hosts = &tx.state.settings.publish.hosts;
    match publish_target(field, asked)? {
        PublishTarget::Issue(Issue { host: Some(host), .. }) if !hosts.contains(&host) => {
            let what = format!("names the host {host}, which is not in publish.hosts");
            Err(Refused::bad(&format!("{field}.issue"), &what)
                .hint("add the host to publish.hosts in config.toml, then restart the sidecar"))
        }
        target @ (PublishTarget::Issue(_) | PublishTarget::Gist { .. }) => {
            Ok(Publishing::new(target, asked.fallback == Some(Fallback::Gist)))
        }
    }
}

/// The default of the persona, or else that of config.toml. A persona whose file can't be read may have forbidden
/// publishing, so there is no default then.
pub(super) fn default_of(tx: &Tx<'_>, persona: &PersonaFacts) -> Option<Publishing> {
    let of_config = || tx.state.settings.publish.to.clone();
    let target = match &persona.publish {
        Some(PublishDefault::To(target)) => Some(target.clone()),
        Some(PublishDefault::No) => None,
        None => of_config().filter(|_| persona.broken.is_none()),
    };
    target.map(|target| Publishing::new(target, false))
}
