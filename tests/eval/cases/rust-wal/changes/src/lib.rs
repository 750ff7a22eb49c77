use std::fs::File;
use std::io::Write;

pub fn append(file: &mut File, entry: &[u8]) -> std::io::Result<()> {
    file.write_all(&(entry.len() as u32).to_le_bytes())?;
    file.write_all(entry)?;
    file.sync_data()
}
