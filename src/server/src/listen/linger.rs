//! The end of a connection: our half is closed while the client's half is still read.
//!
//! Closing a socket with unread bytes would reset the connection, and the client could lose the
//! response that it has not read yet. Many clients (Python's `requests`, Node's `fetch`) send the
//! whole body of an upload before they look at its refusal, so no byte limit would be high enough
//! for them. Instead, lingering is bounded by silence and by total time (5 s and 30 s, as in
//! nginx), and by the connection table, in which a lingering connection counts as idle and can be
//! evicted.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::listen::peer::Peer;
use crate::listen::{ListenSettings, Stop, reached};

/// Linger time of a connection without a slot, and of all connections once the server is stopping.
pub(super) const BRIEF: Duration = Duration::from_secs(1);
/// Read size in bytes, the maximum size of a TLS record.
const PART_BYTES: usize = 16 << 10;

/// Time limits for reading from a closing connection.
#[derive(Debug, Clone, Copy)]
pub struct Linger {
    /// Longest silence.
    pub silence: Duration,
    /// Total time for a client that never presented a valid key.
    pub unknown: Duration,
    /// Total time for a client that did: as long as a whole upload may take.
    pub authenticated: Duration,
}

impl Default for Linger {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(5),
            unknown: Duration::from_secs(30),
            authenticated: Duration::from_secs(600),
        }
    }
}

/// Lingers on a connection of the table until it ends.
pub(super) async fn linger(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: &Peer,
    settings: &ListenSettings,
    stop: &mut watch::Receiver<Stop>,
) {
    let times = settings.linger;
    let time = if peer.is_authenticated() { times.authenticated } else { times.unknown };
    let stopped = async {
        reached(stop, Stop::Drain).await;
        sleep(BRIEF).await;
    };
    peer.linger();
    tokio::select! {
        () = read_on(stream, times.silence, time) => {}
        () = peer.evicted() => {}
        () = stopped => {}
    }
}

/// Closes our half and reads until the client closes its half, falls silent or runs out of time.
pub(super) async fn read_on(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    silence: Duration,
    time: Duration,
) {
    let reading = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let mut discarded = vec![0; PART_BYTES];
        while let Ok(Ok(1..)) = timeout(silence, stream.read(&mut discarded)).await {}
    };
    let _ = timeout(time, reading).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(20);
    /// Longer than any step takes on a busy machine.
    const GENEROUS: Duration = Duration::from_secs(120);

    #[tokio::test]
    async fn neither_silence_nor_drips_hold_a_connection() {
        let (_client, stream) = tokio::io::duplex(64);
        timeout(GENEROUS, read_on(stream, SHORT, LONG)).await.unwrap();
        let (mut client, stream) = tokio::io::duplex(64);
        let dripping = async { while client.write_all(b"x").await.is_ok() {} };
        let both = async { tokio::join!(read_on(stream, LONG, SHORT), dripping) };
        timeout(GENEROUS, both).await.unwrap();
    }
}
