pub mod retry;

pub fn send(body: &str) -> Result<String, String> {
    // The loop over attempts is not written yet.
    let _delay = retry::delay(0);
    Ok(body.to_owned())
}
