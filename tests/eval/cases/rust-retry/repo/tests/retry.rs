#[test]
fn it_waits() {
    assert_eq!(client::retry::delay(1), 100);
}
