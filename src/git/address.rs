//! The address of a remote repository, without credentials.

use super::words::plain_line;

/// Longest address that is shown, in characters.
const MAX_ADDRESS: usize = 500;

/// An address without user name, password, query and fragment. An address for a remote helper, such as
/// `ext::…`, may be a command line with anything in it: only the helper's name stays.
pub(super) fn public_address(address: &[u8]) -> String {
    let address = String::from_utf8_lossy(address);
    // Credentials are removed before the address is cut: a password whose end was cut off could not be recognised.
    plain_line(without_credentials(address.trim()).as_bytes(), MAX_ADDRESS)
}

fn without_credentials(address: &str) -> String {
    // In `user@[::1]:path`, what precedes the first `::` is not a helper's name.
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let helper = address.split_once("::").filter(|(helper, _)| is_name(helper));
    if let Some((helper, _)) = helper {
        return format!("{helper}::…");
    }
    if let Some((scheme, rest)) = address.split_once("://") {
        return format!("{scheme}://{}", of_host(rest));
    }
    // `user@host:path`, as ssh has it; a path of this machine has a slash before any colon.
    let is_remote = address.find(':').is_some_and(|colon| !address[..colon].contains('/'));
    if !is_remote {
        return address.to_owned();
    }
    let (host, path) = at_first_slash(address);
    without_query(&format!("{}{path}", after_user(host))).to_owned()
}

/// What follows `://`. If the slash that seems to end the host may belong to a password, neither host nor path is
/// shown.
fn of_host(rest: &str) -> String {
    let (authority, path) = at_first_slash(rest);
    let has_user = authority.contains('@');
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let password_may_hold_slash = !has_user && path.contains('@') && !port.bytes().all(|byte| byte.is_ascii_digit());
    if password_may_hold_slash || (has_user && authority.contains(['?', '#', '\\'])) {
        return "…".to_owned();
    }
    without_query(&format!("{}{path}", after_user(authority))).to_owned()
}

fn at_first_slash(text: &str) -> (&str, &str) {
    text.split_at(text.find('/').unwrap_or(text.len()))
}

fn after_user(authority: &str) -> &str {
    authority.rsplit('@').next().unwrap_or_default()
}

fn without_query(address: &str) -> &str {
    address.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_user_password_and_query() {
        let long = format!("https://kai:{}@example.org/a", "x".repeat(600));
        for (address, shown) in [
            ("https://kai:hunter2@example.org/a/b.git", "https://example.org/a/b.git"),
            ("https://hunter2@example.org:8443/a", "https://example.org:8443/a"),
            ("https://kai:hun@ter2@example.org/a", "https://example.org/a"),
            ("https://example.org/@scope/a", "https://example.org/@scope/a"),
            ("https://example.org/a?token=hunter2#hunter2", "https://example.org/a"),
            ("https://example.org?token=kai@hunter2", "https://…"),
            ("https://kai:hun/ter2@example.org/a", "https://…"),
            ("https://kai:hun?ter2@example.org/a", "https://…"),
            (long.as_str(), "https://example.org/a"),
            ("git@example.org:a/b.git", "example.org:a/b.git"),
            ("kai:hun@ter2@example.org:a/b", "example.org:a/b"),
            ("ssh://git@[::1]:22/a", "ssh://[::1]:22/a"),
            ("kai@[::1]:a/b", "[::1]:a/b"),
            ("kai:hunter2@[2001:db8::7]:a", "[2001:db8::7]:a"),
            ("ext::sh -c 'curl -u kai:hunter2 %S'", "ext::…"),
            ("x::https://kai:hunter2@example.org/", "x::…"),
            ("/srv/a.git", "/srv/a.git"),
            ("../a:b", "../a:b"),
            (" https://kai:hunter2@example.org/a\nb\u{1b}[2J ", "https://example.org/a b[2J"),
            ("", ""),
        ] {
            assert_eq!(public_address(address.as_bytes()), shown, "{address}");
        }
    }
}
