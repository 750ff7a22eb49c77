fn main() {
    let many = 1_000_000;
    println!("{many}");
}
