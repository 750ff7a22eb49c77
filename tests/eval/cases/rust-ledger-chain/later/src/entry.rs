#[derive(Debug, Clone)]
pub struct Entry {
    pub cents: i64,
    pub currency: String,
}
