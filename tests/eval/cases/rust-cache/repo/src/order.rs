/// The order in which entries leave.
pub enum Order {
    Oldest,
    LeastUsed,
}
