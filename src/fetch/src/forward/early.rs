//! Responses that arrive before the request was sent completely.
//!
//! A server that refuses an upload midway responds and stops reading. The HTTP library would lose
//! that response because of its failed write. [`Early`] therefore discards the rest of the request,
//! so that the response is read.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// A request body that ends early once the server has stopped reading.
pub(super) struct UntilRefused {
    pub(super) reader: Box<dyn Read + Send>,
    pub(super) is_refused: Arc<AtomicBool>,
}

impl Read for UntilRefused {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.is_refused.load(Ordering::Relaxed) {
            true => Ok(0),
            false => self.reader.read(buffer),
        }
    }
}

/// Connector whose connections can still read a response after a write has failed.
#[derive(Debug)]
pub(super) struct Early {
    pub(super) is_refused: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(super) struct EarlyTransport<T> {
    inner: T,
    is_refused: Arc<AtomicBool>,
}

impl<In: Transport> Connector<In> for Early {
    type Out = EarlyTransport<In>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<EarlyTransport<In>>, ureq::Error> {
        let is_refused = Arc::clone(&self.is_refused);
        Ok(chained.map(|inner| EarlyTransport { inner, is_refused }))
    }
}

impl<T: Transport> Transport for EarlyTransport<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        if self.is_refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.inner.transmit_output(amount, timeout) {
            Err(ureq::Error::Io(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::ConnectionAborted
                ) =>
            {
                self.is_refused.store(true, Ordering::Relaxed);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.inner.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        !self.is_refused.load(Ordering::Relaxed) && self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}
