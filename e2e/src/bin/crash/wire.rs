//! As much of the Postgres protocol as it takes to see a COMMIT go by (PostgreSQL manual, "Frontend/Backend Protocol",
//! section "Message Formats").

/// The length counts its own four bytes; one beyond this is no message of ours.
const MESSAGE_BYTES: std::ops::RangeInclusive<usize> = 4..=256 * 1024 * 1024;

/// Cuts what a client sends into messages, however it arrives.
#[derive(Default)]
pub(crate) struct Messages {
    held: Vec<u8>,
    started: bool,
}

/// One message of a client, header included.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    first: bool,
}

impl Messages {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next complete message. The first one of a connection has no type; a stream that cannot be understood is
    /// passed on as it is.
    pub(crate) fn next(&mut self) -> Option<Message> {
        let header = usize::from(self.started);
        let length = self.held.get(header..header + 4)?;
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
        let total = if MESSAGE_BYTES.contains(&length) { header + length } else { self.held.len() };
        if self.held.len() < total {
            return None;
        }
        let rest = self.held.split_off(total);
        let bytes = std::mem::replace(&mut self.held, rest);
        let first = !std::mem::replace(&mut self.started, true);
        Some(Message { bytes, first })
    }
}

impl Message {
    /// Whether it is the simple query COMMIT.
    pub(crate) fn is_commit(&self) -> bool {
        let Some((b'Q', rest)) = self.bytes.split_first() else { return false };
        let text = rest.get(4..).and_then(|text| text.strip_suffix(&[0])).unwrap_or_default();
        !self.first && text.trim_ascii().eq_ignore_ascii_case(b"COMMIT")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Vec<u8> {
        let length = u32::try_from(text.len() + 5).unwrap();
        [b"Q".as_slice(), &length.to_be_bytes(), text.as_bytes(), b"\0"].concat()
    }

    fn stream() -> Vec<u8> {
        let startup = [12u32.to_be_bytes().as_slice(), &196_608u32.to_be_bytes(), b"user"].concat();
        let sync = [b"S".as_slice(), &4u32.to_be_bytes()].concat();
        [startup, query("BEGIN"), sync, query("COMMIT"), query("commit "), query("COMMIT PREPARED 'x'")]
            .concat()
    }

    #[test]
    fn commits_are_seen_however_the_bytes_arrive() {
        for piece in [1, 2, 3, 7, 1_000] {
            let mut messages = Messages::default();
            let (mut commits, mut passed) = (Vec::new(), Vec::new());
            for bytes in stream().chunks(piece) {
                messages.push(bytes);
                while let Some(message) = messages.next() {
                    commits.push(message.is_commit());
                    passed.extend(message.bytes);
                }
            }
            assert_eq!(commits, [false, false, false, true, true, false], "in pieces of {piece}");
            assert_eq!(passed, stream(), "in pieces of {piece}");
        }
    }

    #[test]
    fn the_first_message_has_no_type_and_is_no_query() {
        let mut messages = Messages::default();
        // A first message of 0x51 = 'Q' times 2^24 bytes is nonsense, and passed on.
        messages.push(&query("COMMIT"));
        assert!(!messages.next().unwrap().is_commit());
    }
}
