pub mod entry;
pub mod sum;
