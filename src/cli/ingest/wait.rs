//! Waits until everything that was accepted has been processed.
//!
//! Jobs run roughly in the order of acceptance. Therefore the last one is polled, with the server
//! holding each poll until the job ends. Then all are looked up at once, a thousand ids per
//! request, and the last of those still open is polled next.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::call::CallError;
use super::failure::{Failure, Step};
use super::send::Tally;
use super::server::{Server, Status};
use super::summary::ReadInPart;

/// Pause between rounds, so that a server that does not hold polls is not flooded with requests.
const ROUND_PAUSE: Duration = Duration::from_millis(500);

/// Waits for the accepted items, given as id and name; failures go to the tally. Returns the number
/// of successes.
///
/// # Errors
/// [`CallError`]; items that ended before it are counted in the tally.
pub fn wait(
    server: &Server<'_>,
    accepted: &[(String, String)],
    tally: &Tally,
) -> Result<usize, CallError> {
    let names: HashMap<&str, &str> =
        accepted.iter().map(|(id, name)| (id.as_str(), name.as_str())).collect();
    let mut pending: Vec<&str> = accepted.iter().map(|(id, _)| id.as_str()).collect();
    let (mut succeeded, mut errored) = (0, Vec::new());
    while let Some(last) = pending.last().copied() {
        let polled = server.processing(last)?;
        if polled.is_some_and(|processing| processing.status == Status::Pending) {
            rest(server)?;
            continue;
        }
        let known = server.sources(&pending)?;
        let before = pending.len();
        pending.retain(|id| match known.get(*id).map(|found| found.status) {
            Some(Status::Pending) => true,
            Some(Status::Success) => {
                succeeded += 1;
                let named = |message: &String| ReadInPart {
                    name: names[id].to_owned(),
                    file_id: (*id).to_owned(),
                    message: message.clone(),
                };
                tally.warnings.lock().extend(known[*id].warnings.iter().map(named));
                false
            }
            Some(Status::Errored) => {
                errored.push(*id);
                false
            }
            None => {
                let message = "it was deleted before it was processed";
                let (name, code) = (names[id].to_owned(), "NOT_FOUND");
                let failure = Failure::local(name, id, code, message);
                tally.failures.lock().push(Failure { step: Step::Processing, ..failure });
                false
            }
        });
        let ended = before - pending.len();
        tally.processed.fetch_max(accepted.len() - pending.len(), Ordering::Relaxed);
        if !pending.is_empty() || ended == 0 {
            rest(server)?;
        }
    }
    for id in errored {
        let failure = failure(server, id, names[id])?;
        tally.failures.lock().push(failure);
    }
    Ok(succeeded)
}

fn rest(server: &Server<'_>) -> Result<(), CallError> {
    match server.caller.pause.pause(ROUND_PAUSE) {
        true => Ok(()),
        false => Err(CallError::Stopped),
    }
}

/// Looks up the reason why a source could not be processed.
fn failure(server: &Server<'_>, id: &str, name: &str) -> Result<Failure, CallError> {
    let processing = server.processing(id)?;
    let (error_code, message) = match processing {
        Some(processing) => (processing.error_code, processing.message),
        None => ("NOT_FOUND".to_owned(), "it was deleted after it had failed".to_owned()),
    };
    let failure = Failure::local(name.to_owned(), id, &error_code, &message);
    Ok(Failure { step: Step::Processing, ..failure })
}
