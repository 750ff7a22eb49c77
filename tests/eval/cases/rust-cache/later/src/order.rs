/// The order in which entries leave.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    Oldest,
    LeastUsed,
}
