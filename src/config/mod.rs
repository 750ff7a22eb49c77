//! Where tasuki keeps its files ([`Home`]) and what the operator has set ([`Config`]).

mod error;
mod home;
mod kinds;
mod load;
pub mod rules;
mod values;

pub use crate::core::settings::Target;
pub use error::ConfigError;
pub use home::Home;
pub use kinds::OperatorCommand;
pub use values::{Config, FactsConfig, schema};

/// The example with every key and its default, as it is in the repository's `data/`.
pub const EXAMPLE: &str = include_str!("../../data/config.toml");
