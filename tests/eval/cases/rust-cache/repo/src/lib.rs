mod order;
pub use order::Order;
