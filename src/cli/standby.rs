//! `lodestone serve --standby true`: waits to take over from the process that writes.

use std::error::Error;
use std::future::pending;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use lodestone_engine::Standby;
use lodestone_engine::settings::Settings;
use lodestone_server::{
    ListenSettings, Stop, serve, serve_metrics, standby_routers, stop_on_signals,
};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cli::serve::Listeners;

/// Time allowed for taking over from a writer that is already gone.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Answers requests as a standby until this process is to become the writer. Returns the receiver
/// of later signals, or `None` if a signal stopped the process.
pub async fn wait(
    standby: Standby,
    settings: &Settings,
    listeners: &Listeners,
) -> Result<Option<watch::Receiver<Stop>>, Box<dyn Error>> {
    let signals = stop_on_signals(pending())?;
    let standby = Arc::new(standby);
    let waiting = Arc::clone(&standby);
    let mut turn = tokio::task::spawn_blocking(move || waiting.wait());
    if let Ok(has_turn) = timeout(AT_ONCE, &mut turn).await {
        return Ok(has_turn?.then_some(signals));
    }
    let (end, ended) = watch::channel(Stop::Run);
    let (router, metrics) = standby_routers();
    let for_metrics = listeners.for_metrics.as_ref().map(TcpListener::try_clone).transpose()?;
    serve_metrics(for_metrics, metrics, &ended)?;
    let listener = tokio::net::TcpListener::from_std(listeners.listener.try_clone()?)?;
    let (certificates, limits) = (listeners.certificates.clone(), ListenSettings::of(settings));
    let served = serve(listener, certificates, router, limits, ended);
    let served = tokio::spawn(served);
    eprintln!("\nLodestone\n  standby    waiting to take over from the writer\n");
    let mut stopped = signals.clone();
    let has_turn = tokio::select! {
        has_turn = &mut turn => has_turn?,
        _ = stopped.changed() => {
            standby.stop();
            turn.await?;
            false
        }
    };
    end.send_replace(Stop::Now);
    served.await?;
    match has_turn {
        true => tracing::info!("taking over as the writer"),
        false => tracing::info!("stopped while on standby"),
    }
    Ok(has_turn.then_some(signals))
}
