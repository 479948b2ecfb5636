//! The socket of one connection, with its client's deadlines.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::listen::pace::{Pace, Waited};
use crate::listen::peer::{Patience, Peer};

/// A socket that ends by itself if the client takes too long between requests or over a header, or
/// reads what is written to it too slowly.
#[derive(Debug)]
pub(super) struct PeerStream {
    inner: TcpStream,
    peer: Arc<Peer>,
    patience: Patience,
    pace: Pace,
    written: Waited,
    timer: Pin<Box<Sleep>>,
}

impl PeerStream {
    pub(super) fn new(inner: TcpStream, peer: Arc<Peer>, patience: Patience, pace: Pace) -> Self {
        let timer = Box::pin(sleep_until(Instant::now() + patience.header));
        Self { inner, peer, patience, pace, written: Waited::default(), timer }
    }

    /// Whether `deadline` has passed; if not, the task is woken at that time.
    fn has_passed(&mut self, deadline: Instant, cx: &mut Context<'_>) -> bool {
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().poll(cx).is_ready()
    }

    /// Checks the outcome of a write and fails instead of waiting for a client that is too slow.
    fn watch(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => {
                self.written.end(*bytes, Instant::now());
                self.peer.sent();
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => loop {
                let deadline = self.written.begin(self.pace, Instant::now());
                if !self.has_passed(deadline, cx) {
                    break;
                }
                if self.written.is_too_slow(self.pace, Instant::now()) {
                    self.peer.time_out();
                    let message = "the client reads too slowly";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
                }
            },
        }
        written
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before {
                self.peer.received();
            }
            return read;
        }
        let Some(deadline) = self.peer.read_deadline(self.patience) else { return read };
        if !self.has_passed(deadline, cx) {
            return read;
        }
        // Reports end of file, as if the client had closed its half; there is nothing to tell it.
        self.peer.time_out();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, buffers);
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
