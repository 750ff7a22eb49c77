//! Keys. A host has two: the user key signs (Ed25519, also its login at the server), and the box key seals (X25519).
//! The fleet has a key too: the person who holds its seed says who is a member. It is also the key of the fleet's
//! account at the server, unless another party owns that account. Then a signing key from this party signs the logins,
//! and nothing else.

use crate::core::id::{InvalidId, text_id};
use nkeys::{KeyPair, KeyPairType, XKey};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The length of a key as it is written, in characters.
const PUBLIC_CHARS: usize = 56;
/// The length of a seed as it is written, in characters.
const SEED_CHARS: usize = 58;

text_id!(
    /// The public half of the key with which a host signs.
    UserKey,
    "user key of a host",
    "56 characters that begin with U",
    |text| is_public(text, &KeyPairType::User)
);
text_id!(
    /// The public half of the key to which letters for a host are sealed.
    BoxKey,
    "box key of a host",
    "56 characters that begin with X",
    |text| text.len() == PUBLIC_CHARS && XKey::from_public_key(text).is_ok()
);
text_id!(
    /// The public half of the fleet's key.
    AccountKey,
    "key of a fleet",
    "56 characters that begin with A",
    |text| is_public(text, &KeyPairType::Account)
);

fn is_public(text: &str, kind: &KeyPairType) -> bool {
    text.len() == PUBLIC_CHARS && KeyPair::from_public_key(text).is_ok_and(|pair| pair.key_pair_type() == *kind)
}

/// Whether the signature is by this key.
pub(super) fn is_signed_by(public: &str, bytes: &[u8], signature: &[u8]) -> bool {
    KeyPair::from_public_key(public).is_ok_and(|pair| pair.verify(bytes, signature).is_ok())
}

fn pair_of(seed: &str, kind: &KeyPairType, what: &'static str, rule: &'static str) -> Result<KeyPair, InvalidId> {
    let not_one = InvalidId { what, rule };
    if seed.len() != SEED_CHARS {
        return Err(not_one);
    }
    KeyPair::from_seed(seed).ok().filter(|pair| pair.key_pair_type() == *kind).ok_or(not_one)
}

/// Both keys of a host, with their secret halves.
pub struct HostKeys {
    user: KeyPair,
    sealing: XKey,
}

impl fmt::Debug for HostKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostKeys").field("user", &self.user.public_key()).finish_non_exhaustive()
    }
}

impl HostKeys {
    /// New keys, from the system's randomness.
    #[must_use]
    pub fn generate() -> HostKeys {
        HostKeys { user: KeyPair::new_user(), sealing: XKey::new() }
    }

    /// The keys of two seeds, as `seeds` writes them.
    ///
    /// # Errors
    /// One of the two is not such a seed.
    pub fn from_seeds(user: &str, sealing: &str) -> Result<HostKeys, InvalidId> {
        let user = pair_of(user, &KeyPairType::User, "seed of a user key", "58 characters that begin with SU")?;
        let not_one = InvalidId { what: "seed of a box key", rule: "58 characters that begin with SX" };
        let sealing = Some(sealing).filter(|seed| seed.len() == SEED_CHARS).and_then(|seed| XKey::from_seed(seed).ok());
        Ok(HostKeys { user, sealing: sealing.ok_or(not_one)? })
    }

    /// Both seeds, user and box. They are secrets.
    #[must_use]
    pub fn seeds(&self) -> [String; 2] {
        let [user, sealing] = [self.user.seed(), self.sealing.seed()];
        [user.expect("it has its secret half"), sealing.expect("it has its secret half")]
    }

    /// The public half of the key that signs.
    #[must_use]
    pub fn user_key(&self) -> UserKey {
        UserKey(self.user.public_key())
    }

    /// The public half of the key to which others seal.
    #[must_use]
    pub fn box_key(&self) -> BoxKey {
        BoxKey(self.sealing.public_key())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.user.sign(bytes).expect("it has its secret half")
    }

    /// Seals bytes so that only these two hosts can open them.
    pub(super) fn seal(&self, bytes: &[u8], to: &BoxKey) -> Vec<u8> {
        let to = XKey::from_public_key(to.as_str()).expect("it was checked when it was made");
        self.sealing.seal(bytes, &to).expect("it has its secret half")
    }

    /// Opens what one of these two hosts has sealed; none if neither has, or if it was altered.
    pub(super) fn open(&self, sealed: &[u8], from: &BoxKey) -> Option<Vec<u8>> {
        let from = XKey::from_public_key(from.as_str()).expect("it was checked when it was made");
        self.sealing.open(sealed, &from).ok()
    }
}

/// The fleet's key, with its secret half.
pub struct FleetKeys(KeyPair);

impl fmt::Debug for FleetKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FleetKeys").field(&self.0.public_key()).finish()
    }
}

impl FleetKeys {
    /// A new key, from the system's randomness.
    #[must_use]
    pub fn generate() -> FleetKeys {
        FleetKeys(KeyPair::new_account())
    }

    /// The key of a seed, as `seed` writes it.
    ///
    /// # Errors
    /// It is not such a seed.
    pub fn from_seed(seed: &str) -> Result<FleetKeys, InvalidId> {
        pair_of(seed, &KeyPairType::Account, "seed of a fleet's key", "58 characters that begin with SA").map(FleetKeys)
    }

    /// The seed. It is a secret.
    #[must_use]
    pub fn seed(&self) -> String {
        self.0.seed().expect("it has its secret half")
    }

    /// The public half.
    #[must_use]
    pub fn account_key(&self) -> AccountKey {
        AccountKey(self.0.public_key())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.sign(bytes).expect("it has its secret half")
    }
}

/// The key that signs logins at the server, with its secret half.
pub struct LoginKey {
    pair: KeyPair,
    account: AccountKey,
}

impl fmt::Debug for LoginKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginKey").field("account", &self.account).finish_non_exhaustive()
    }
}

impl LoginKey {
    /// The fleet's own key, where it is the key of the fleet's account.
    #[must_use]
    pub fn of_fleet(keys: &FleetKeys) -> LoginKey {
        let pair = KeyPair::from_seed(&keys.seed()).expect("its own seed");
        LoginKey { pair, account: keys.account_key() }
    }

    /// A signing key of an account that another party owns.
    ///
    /// # Errors
    /// It is not the seed of such a key.
    pub fn from_seed(seed: &str, account: AccountKey) -> Result<LoginKey, InvalidId> {
        let pair = pair_of(
            seed,
            &KeyPairType::Account,
            "seed of an account's signing key",
            "58 characters that begin with SA",
        )?;
        Ok(LoginKey { pair, account })
    }

    /// The public half.
    #[must_use]
    pub(super) fn public_key(&self) -> String {
        self.pair.public_key()
    }

    /// The account that it signs for, if it is not the account's own key.
    #[must_use]
    pub(super) fn signs_for(&self) -> Option<&AccountKey> {
        Some(&self.account).filter(|account| account.as_str() != self.pair.public_key())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).expect("it has its secret half")
    }
}

/// The two keys of the server's operator, with their secret halves: one vouches for accounts, the other is the key of
/// the system account, which reports on the server itself.
pub struct ServerKeys {
    operator: KeyPair,
    system: KeyPair,
}

impl fmt::Debug for ServerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerKeys").field("operator", &self.operator_key()).finish_non_exhaustive()
    }
}

impl ServerKeys {
    /// New keys, from the system's randomness.
    #[must_use]
    pub fn generate() -> ServerKeys {
        ServerKeys { operator: KeyPair::new_operator(), system: KeyPair::new_account() }
    }

    /// The keys of two seeds, as `seeds` writes them.
    ///
    /// # Errors
    /// One of the two is not such a seed.
    pub fn from_seeds(operator: &str, system: &str) -> Result<ServerKeys, InvalidId> {
        let operator =
            pair_of(operator, &KeyPairType::Operator, "seed of an operator", "58 characters that begin with SO")?;
        let system = pair_of(system, &KeyPairType::Account, "seed of an account", "58 characters that begin with SA")?;
        Ok(ServerKeys { operator, system })
    }

    /// Both seeds, operator and system account. They are secrets.
    #[must_use]
    pub fn seeds(&self) -> [String; 2] {
        let [operator, system] = [self.operator.seed(), self.system.seed()];
        [operator.expect("it has its secret half"), system.expect("it has its secret half")]
    }

    /// The public half of the operator's key.
    #[must_use]
    pub fn operator_key(&self) -> String {
        self.operator.public_key()
    }

    /// The public half of the system account's key.
    #[must_use]
    pub fn system_key(&self) -> String {
        self.system.public_key()
    }

    pub(super) fn sign_as_operator(&self, bytes: &[u8]) -> Vec<u8> {
        self.operator.sign(bytes).expect("it has its secret half")
    }

    pub(super) fn sign_as_system(&self, bytes: &[u8]) -> Vec<u8> {
        self.system.sign(bytes).expect("it has its secret half")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn seeds_give_the_same_keys_again_and_no_other_kind_passes() {
        let keys = HostKeys::generate();
        let [user, sealing] = keys.seeds();
        let again = HostKeys::from_seeds(&user, &sealing).expect("its own seeds");
        assert_eq!((again.user_key(), again.box_key()), (keys.user_key(), keys.box_key()));
        assert!(HostKeys::from_seeds(&sealing, &user).is_err());
        let fleet = FleetKeys::generate();
        assert_eq!(FleetKeys::from_seed(&fleet.seed()).expect("its own").account_key(), fleet.account_key());
        assert!(FleetKeys::from_seed(&user).is_err());
        assert!(HostKeys::from_seeds(&fleet.seed(), &sealing).is_err());
        let swapped = [keys.box_key().to_string(), fleet.account_key().to_string()];
        assert!(swapped.into_iter().all(|text| UserKey::try_from(text).is_err()));
        assert!(BoxKey::try_from(keys.user_key().to_string()).is_err());
    }

    #[test]
    fn no_secret_is_printed() {
        let (keys, fleet) = (HostKeys::generate(), FleetKeys::generate());
        let told = format!("{keys:?} {fleet:?} {:?}", LoginKey::of_fleet(&fleet));
        let [user, sealing] = keys.seeds();
        assert!([user, sealing, fleet.seed()].iter().all(|seed| !told.contains(seed.as_str())), "{told}");
    }

    proptest! {
        #[test]
        fn no_text_that_is_none_becomes_a_key(text in "[A-Z2-7]{0,60}|\\PC{0,60}|[UXAS][A-Z2-7]{55}|S[UXA][A-Z2-7]{56}") {
            let _ = UserKey::try_from(text.clone());
            let _ = BoxKey::try_from(text.clone());
            let _ = AccountKey::try_from(text.clone());
            let _ = FleetKeys::from_seed(&text);
            let _ = HostKeys::from_seeds(&text, &text);
        }
    }
}
