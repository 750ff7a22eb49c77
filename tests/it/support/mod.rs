//! What tests share.

pub(crate) mod home;
