//! What all file adapters share: opens, reads and replaces files so that no link, pipe, foreign file or half-written
//! copy can mislead tasuki. It knows bytes and inodes, and nothing of tasuki's formats.

mod folder;
mod meta;
mod own;
mod read;
mod scratch;
mod temporary;
pub mod watcher;
pub mod way;
mod write;

pub use folder::{is_not_a_dir, is_plain, lock_dir, make_dir_at, names, open_dir, open_dir_at, open_listing};
pub use meta::{FileStamp, Meta, file_stamp, lead_to_same, meta, meta_at};
pub use own::{is_same_file, own_program};
pub use read::{Unfit, check_own, check_readable, open, read_at, read_own_at, read_replaced_at};
pub use scratch::scratch_name;
pub use temporary::{NoTemporary, remove_left_behind, temporary};
pub use write::{Grade, create_at, open_to_overwrite, remove_at, rename_new, replace_at, swap, sync_folder};
