//! Messages as lines, however long.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::{sync::mpsc, task::JoinHandle};

/// Longest line. A request over HTTP may be as long.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// Both ends of a connection on which a line is a message.
pub(super) struct Lines {
    /// What the other side says, until it has gone.
    pub(super) heard: mpsc::UnboundedReceiver<Vec<u8>>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    reads: JoinHandle<()>,
}

/// The other side is to notice: it waits for an end as long as somebody reads.
impl Drop for Lines {
    fn drop(&mut self) {
        self.reads.abort();
    }
}

impl Lines {
    /// The lines of `reader`, and a way to say some to `writer`. What is heard is read at once,
    /// so that neither side waits for the other to stop talking.
    pub(super) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let reads = tokio::spawn(async move {
            let mut reader = BufReader::new(reader);
            while let Ok(Some(line)) = next(&mut reader).await {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { heard, writer: Box::new(writer), reads }
    }

    /// Over one stream.
    pub(super) fn over(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self::new(reader, writer)
    }

    /// Say one message.
    ///
    /// # Errors
    /// The other side has gone.
    pub(super) async fn say(&mut self, line: &[u8]) -> io::Result<()> {
        self.writer.write_all(line).await?;
        self.writer.write_all(b"\n").await?;
        self.writer.flush().await
    }
}

/// The next line without its end; empty ones and ones that are too long are passed over. `None`:
/// there is none; what came after the last line's end was not a whole message.
async fn next(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut too_long = false;
    loop {
        let mut line = Vec::new();
        if reader.take(MAX_LINE).read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        let whole = line.pop_if(|last| *last == b'\n').is_some();
        if !whole {
            too_long = true;
        } else if std::mem::take(&mut too_long) {
            log::warn!("a message of more than {MAX_LINE} bytes was ignored");
        } else if !line.trim_ascii().is_empty() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_lets_go_of_them_is_heard_to_have_gone() {
        let (one, other) = tokio::io::duplex(64);
        let (one, mut other) = (Lines::over(one), Lines::over(other));
        drop(one);
        assert_eq!(other.heard.recv().await, None);
    }

    #[tokio::test]
    async fn lines_come_whole_and_long_ones_do_not_end_it() {
        let long = "x".repeat(usize::try_from(MAX_LINE).expect("it fits") + 1);
        let text = format!("one\n\n  \r\n{long}\ntwo\r\n{}\nhalf", "y".repeat(10_000_000));
        let mut reader = BufReader::new(text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next(&mut reader).await.expect("memory can be read") {
            lines.push(line);
        }
        assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [3, 4, 10_000_000]);
    }
}
