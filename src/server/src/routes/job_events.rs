//! The event stream of one job: its current state, then each change, until it ends.
//!
//! ```text
//! look-up, scope -> `job` -> [woken by its own job, or 15 s of silence -> `job` where it differs]
//!                                                     -> `done` | `error`: removed, stopping
//! ```
//! While it waits, a stream holds no slot and no thread, only its connection, of which a key or
//! tenant gets a bounded number. It looks the job up at most ten times a second, however fast the
//! job progresses, and at the latest when a heartbeat is due. Each look-up checks the scope of the
//! key, and the stream ends if the key was revoked or has expired. Nothing is left behind when the
//! client disconnects.
//! Each event carries the complete state, so a client that reconnects has missed nothing:
//! `Last-Event-ID` has no effect.

use std::sync::Arc;
use std::time::Duration;

use schemars::{Schema, SchemaGenerator};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use axum::response::Response;

use crate::app::{App, failure_of};
use crate::dto::operations::{JobView, OneJob};
use crate::error::{ApiError, Condition, ErrorForm};
use crate::listen::{Stop, reached};
use crate::reply::Reply;
use crate::request::Call;
use crate::routes::operations::job;
use crate::routes::{Group, Route, off_thread};
use crate::sse::{self, Disconnected, EventSender, EventStream};
use lodestone_types::Role;

/// Longest time between look-ups.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// Pause after each look-up.
const PACE: Duration = Duration::from_millis(100);

/// Returns the job event operation.
pub fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::get(
            "/jobs/{job_id}/events",
            Group::Operations,
            Role::Read,
            "Stream the state of a job and its changes as events",
        )
        .at_writer()
        .handle(job_events),
    ]
}

/// A response that is an event stream and nothing else.
pub struct EventReply(EventStream);

impl Reply for EventReply {
    const MEDIA_TYPES: &'static [&'static str] = &[sse::MEDIA_TYPE];

    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string"})
    }

    fn into_response(self) -> Result<Response, ApiError> {
        Ok(self.0.into_response())
    }
}

async fn job_events(app: App, call: Call, request: OneJob) -> Result<EventReply, ApiError> {
    let OneJob { job_id } = request;
    let changed = Arc::new(Notify::new());
    let (engine, grant) = (Arc::clone(&app.engine), call.grant()?.clone());
    let (id, notify) = (job_id.clone(), Arc::clone(&changed));
    let watch = off_thread(move || {
        let row = engine.job(&grant, &id)?;
        // Registered before the first event is produced, so that no change is missed.
        Ok(engine.watch_job(row.job.sequence, Arc::new(move || notify.notify_one())))
    })
    .await?;
    call.give_back();
    let (events, stream) =
        sse::channel(ErrorForm::Own, Arc::clone(&call.request_id), call.spooler());
    let telling = async move {
        let gone = events.clone();
        let mut stop = app.stop.clone();
        tokio::select! {
            _ = tell(&app, &call, &job_id, events, &changed) => {}
            () = gone.closed() => {}
            () = reached(&mut stop, Stop::Drain) => {
                let told = "the server is stopping; try again";
                let error = ApiError::new(Condition::Unavailable, "stopping", told);
                let _ = off_thread(move || Ok(gone.fail(&error))).await;
            }
        }
        drop(watch);
    };
    tokio::spawn(telling.instrument(tracing::Span::current()));
    Ok(EventReply(stream))
}

/// Sends the events of a job until the job ends.
async fn tell(
    app: &App,
    call: &Call,
    job_id: &str,
    events: EventSender,
    changed: &Notify,
) -> Result<(), Disconnected> {
    let mut last: Option<JobView> = None;
    loop {
        // A slow client is awaited here, without holding a thread; the sends below then never
        // block.
        events.drained().await?;
        let (engine, id, sender) = (Arc::clone(&app.engine), job_id.to_owned(), events.clone());
        let grant = call.grant.clone();
        let before = last.take();
        let look = off_thread(move || {
            let grant = grant.ok_or_else(|| ApiError::internal("this route has no grant"))?;
            if let Err(error) = engine.require_valid(&grant) {
                let _ = sender.fail(&failure_of(error).into());
                return Ok(None);
            }
            // The last event is lost if the client has disconnected, which needs no handling.
            Ok(match engine.job(&grant, &id) {
                Ok(row) if row.status.is_settled() => {
                    let _ = sender.send_last("done", &job(&row, &engine.waiting()));
                    None
                }
                Ok(row) => {
                    let view = job(&row, &engine.waiting());
                    if before.as_ref() != Some(&view) && sender.send("job", &view).is_err() {
                        return Ok(None);
                    }
                    Some(view)
                }
                // The job was deleted or replaced by a newer upload.
                Err(error) => {
                    let _ = sender.fail(&error.into());
                    None
                }
            })
        });
        // A panic drops the senders, which ends the stream with an `error` event.
        let Ok(Some(view)) = look.await else { return Ok(()) };
        last = Some(view);
        sleep(PACE).await;
        // A change in the meantime is kept by the notification.
        let _ = timeout(LOOK_AGAIN, changed.notified()).await;
    }
}
