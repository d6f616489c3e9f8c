//! Where the messages in a stream of bytes end: an HTTP upgrade, then WebSocket frames.

/// A longer message is not worth being sent twice.
const LONGEST: usize = 64 * 1024;

/// The stream so far, as far as it is needed.
#[derive(Default)]
pub struct Frames {
    upgraded: bool,
    /// What does not make a whole frame yet.
    rest: Vec<u8>,
    /// The last text message, byte for byte as it was sent.
    last: Option<Vec<u8>>,
}

impl Frames {
    /// Take in what was carried.
    pub fn carried(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        if !self.upgraded {
            let Some(end) = self.rest.windows(4).position(|part| part == b"\r\n\r\n") else { return };
            self.rest.drain(..end + 4);
            self.upgraded = true;
        }
        while let Some(length) = length(&self.rest) {
            if self.rest.len() < length {
                return;
            }
            let frame: Vec<u8> = self.rest.drain(..length).collect();
            // Final, and text: a whole message in one frame.
            if frame[0] == 0x81 {
                self.last = (frame.len() <= LONGEST).then_some(frame);
            }
        }
    }

    /// The last message, where another may follow now.
    pub fn repeatable(&self) -> Option<&[u8]> {
        self.last.as_deref().filter(|_| self.upgraded && self.rest.is_empty())
    }
}

/// The length of the frame that `bytes` begin with. `None`: more bytes are needed to tell.
fn length(bytes: &[u8]) -> Option<usize> {
    let second = usize::from(*bytes.get(1)?);
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
    Some(match second & 0x7f {
        126 => 4 + mask + number(bytes.get(2..4)?),
        127 => 10 + mask + number(bytes.get(2..10)?),
        short => 2 + mask + short,
    })
}

#[test]
fn messages_are_told_apart_however_they_are_cut() {
    let long = [&[0x81, 126, 0x01, 0x00][..], &[b'x'; 256]].concat();
    let masked = [0x81, 0x82, 1, 2, 3, 4, b'h', b'i'];
    let ping = [0x89, 0];
    let stream = [&b"GET / HTTP/1.1\r\n\r\n"[..], &masked, &ping, &long, &masked].concat();
    for size in [1, 3, 7, stream.len()] {
        let mut frames = Frames::default();
        let mut seen = Vec::new();
        for chunk in stream.chunks(size) {
            frames.carried(chunk);
            if let Some(message) = frames.repeatable() {
                seen.push(message.to_vec());
            }
        }
        assert_eq!(seen.last().map(Vec::as_slice), Some(&masked[..]), "in pieces of {size}");
        if size == 1 {
            assert!(seen.contains(&long) && seen.first().map(Vec::as_slice) == Some(&masked[..]));
        }
    }
}
