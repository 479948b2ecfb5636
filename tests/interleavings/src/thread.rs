//! Threads that are run by the checker's scheduler.

use std::io;

pub use shuttle::thread::*;

/// `std::thread::Builder`, which can also start scoped threads.
#[derive(Debug, Default)]
pub struct Builder(String);

impl Builder {
    /// Creates a builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of the thread.
    #[must_use]
    pub fn name(self, name: String) -> Self {
        Self(name)
    }

    /// Ignores the stack size, which the checker determines.
    #[must_use]
    pub fn stack_size(self, _: usize) -> Self {
        self
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// None.
    pub fn spawn<F, T>(self, run: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        shuttle::thread::Builder::new().name(self.0).spawn(run)
    }

    /// Starts a scoped thread.
    ///
    /// # Errors
    /// None.
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        run: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Ok(scope.spawn(run))
    }
}

/// Reports three cores.
///
/// # Errors
/// None.
pub fn available_parallelism() -> io::Result<std::num::NonZero<usize>> {
    std::num::NonZero::new(3).ok_or_else(|| io::ErrorKind::Unsupported.into())
}
