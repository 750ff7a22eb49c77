//! The one integration binary: real tmux servers, real files, the real program.

mod support;
