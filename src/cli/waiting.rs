//! Requests to `lodestone serve` while it waits: a standby for the loss of the writer, a query node
//! for the first data.

use std::error::Error;
use std::future::pending;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use lodestone_engine::settings::Settings;
use lodestone_engine::{BucketWait, WaitsFor};
use lodestone_server::{
    ListenSettings, Stop, serve, serve_metrics, stop_on_signals, waiting_routers,
};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cli::serve::Listeners;

/// Time allowed for taking over from a writer that is already gone, or for data to appear.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Answers requests as a waiting process until its engine can be started. Returns the receiver of
/// later signals, or `None` if a signal stopped the process.
pub async fn wait(
    waiting: BucketWait,
    settings: &Settings,
    listeners: &Listeners,
) -> Result<Option<watch::Receiver<Stop>>, Box<dyn Error>> {
    let signals = stop_on_signals(pending())?;
    let waiting = Arc::new(waiting);
    let blocked = Arc::clone(&waiting);
    let mut turn = tokio::task::spawn_blocking(move || blocked.wait());
    if let Ok(has_turn) = timeout(AT_ONCE, &mut turn).await {
        return Ok(has_turn?.then_some(signals));
    }
    let (announced, goes_on, stopping) = match waiting.waits_for() {
        WaitsFor::Takeover => (
            "standby    waiting to take over from the writer",
            "taking over as the writer",
            "stopped while on standby",
        ),
        WaitsFor::FirstData => (
            "waiting    for the writer, as the bucket has no data yet",
            "the bucket has data now",
            "stopped while waiting for data",
        ),
    };
    let (end, ended) = watch::channel(Stop::Run);
    let (router, metrics) = waiting_routers(waiting.waits_for());
    let for_metrics = listeners.for_metrics.as_ref().map(TcpListener::try_clone).transpose()?;
    serve_metrics(for_metrics, metrics, &ended)?;
    let listener = tokio::net::TcpListener::from_std(listeners.listener.try_clone()?)?;
    let (certificates, limits) = (listeners.certificates.clone(), ListenSettings::of(settings));
    let served = serve(listener, certificates, router, limits, ended);
    let served = tokio::spawn(served);
    eprintln!("\nLodestone\n  {announced}\n");
    let mut stopped = signals.clone();
    let has_turn = tokio::select! {
        has_turn = &mut turn => has_turn?,
        _ = stopped.changed() => {
            waiting.stop();
            turn.await?;
            false
        }
    };
    end.send_replace(Stop::Now);
    served.await?;
    match has_turn {
        true => tracing::info!("{goes_on}"),
        false => tracing::info!("{stopping}"),
    }
    Ok(has_turn.then_some(signals))
}
