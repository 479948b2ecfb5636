//! The oneshot channel of `tokio`. A value that was sent but not received is dropped with the
//! receiver.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::locks::Mutex;

struct Slot<T> {
    value: Option<T>,
    receiver: Option<Waker>,
    is_sender_gone: bool,
    is_closed: bool,
}

/// The sending end.
pub struct Sender<T>(Arc<Mutex<Slot<T>>>);

/// The receiving end.
pub struct Receiver<T>(Arc<Mutex<Slot<T>>>);

/// The sender was dropped without sending a value.
#[derive(Debug)]
pub struct RecvError;

/// Creates both ends of a channel.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Slot { value: None, receiver: None, is_sender_gone: false, is_closed: false };
    let slot = Arc::new(Mutex::new(slot));
    (Sender(Arc::clone(&slot)), Receiver(slot))
}

impl<T> Sender<T> {
    /// Sends a value.
    ///
    /// # Errors
    /// Returns the value if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut slot = self.0.lock();
        if slot.is_closed {
            return Err(value);
        }
        slot.value = Some(value);
        Ok(())
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_sender_gone = true;
        let waker = slot.receiver.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_closed = true;
        let value = slot.value.take();
        drop(slot);
        drop(value);
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock();
        if let Some(value) = slot.value.take() {
            return Poll::Ready(Ok(value));
        }
        if slot.is_sender_gone {
            return Poll::Ready(Err(RecvError));
        }
        slot.receiver = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}
