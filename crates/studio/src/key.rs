//! The key: what proves that a request comes from the user who started the server.
//!
//! Other users of the machine reach its ports, and so does every page that the user's browser shows. The key travels in the
//! part of the address after `#`, which browsers never send, and then in a header of our own. Pages of other servers cannot
//! send that header without a preflight, which is refused. A cookie would not do: cookies do not know ports.

use std::fmt;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes of a key: 128 bits.
const BYTES: usize = 16;

/// A key, as text.
#[derive(Clone)]
pub(crate) struct Key(String);

impl Key {
    /// A new one.
    pub(crate) fn random() -> io::Result<Self> {
        Ok(Key(random_text()?))
    }

    /// Its text, for the user alone.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether this is the key. Takes as long for a key whose first letters are right as for any other.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let known = self.0.as_bytes();
        if given.len() != known.len() {
            return false;
        }
        let differences = known.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differences) == 0
    }
}

/// 128 random bits in hexadecimal.
pub(crate) fn random_text() -> io::Result<String> {
    Ok(random_bytes()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// 128 random bits.
pub(crate) fn random_bytes() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

impl fmt::Debug for Key {
    /// Without the text, which must not get into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_is_the_key() {
        let key = Key::random().unwrap();
        let text = key.text().to_owned();
        assert_eq!(text.len(), 32);
        assert!(key.is(text.as_bytes()));
        for at in 0..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[at] ^= 1;
            assert!(!key.is(&wrong), "{at}");
        }
        assert!(!key.is(b"") && !key.is(&text.as_bytes()[..31]) && !key.is(format!("{text}0").as_bytes()));
        assert_ne!(Key::random().unwrap().text(), text);
        assert!(!format!("{key:?}").contains(&text));
    }
}
