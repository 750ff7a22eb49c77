use std::fs::File;
use std::io::Write;

pub fn append(file: &mut File, entry: &[u8]) -> std::io::Result<()> {
    file.write_all(entry)
}
