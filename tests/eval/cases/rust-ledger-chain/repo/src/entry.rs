pub struct Entry {
    pub cents: i64,
}
