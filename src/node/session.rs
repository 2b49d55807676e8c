//! Running a tool until it is done or is told to end.

use std::future::Future;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `work` on this thread until it is done, or until SIGINT or SIGTERM; `None` if a signal came first.
///
/// # Errors
/// What `work` reports; signal handlers that cannot be installed.
pub fn until_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            done = work => done.map(Some),
            _ = interrupt.recv() => Ok(None),
            _ = terminate.recv() => Ok(None),
        }
    })
}
