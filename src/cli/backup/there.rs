//! Backups made by a running server.

use std::error::Error;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lodestone_engine::backup::{Location, TakeOptions};
use serde_json::{Value, json};

use super::{BackupOptions, refuse_lacking, told};
use crate::cli::client::connection::Connection;
use crate::cli::client::failure::Failure;
use crate::cli::client::options::ServerOptions;
use crate::cli::transport::{Payload, Request, Transport};

/// The default address of `lodestone serve`.
const SERVER: &str = "http://127.0.0.1:8080";
/// Interval at which the state of the backup is polled.
const POLL: Duration = Duration::from_millis(300);

/// Asks the running server to make the backup and waits for it. `of` identifies the data directory
/// that the server must be using, if one was named.
pub(super) fn make_there(
    options: &BackupOptions,
    to: &Location,
    of: Option<&str>,
    choices: &TakeOptions,
) -> Result<(), Box<dyn Error>> {
    let server = options.server.as_deref().unwrap_or(SERVER);
    let connection = Connection::new(&ServerOptions {
        server: Some(server.to_owned()),
        api_key: options.api_key.clone(),
        api_key_file: options.api_key_file.clone(),
        ca_file: options.store.ca_file.clone(),
        ..ServerOptions::default()
    })?;
    let ask = |body: Option<Payload<'_>>| -> Result<Value, Box<dyn Error>> {
        let request = Request { path: "/admin/backups".to_owned(), body };
        let reply = connection.http().exchange(&request, &AtomicU64::new(0)).map_err(|lost| {
            format!("no server answers at {server}: {lost}; set its address with --server")
        })?;
        match reply.status {
            200 => Ok(reply.json),
            status => Err(Failure::of(server, status, reply.retry_after_s, &reply.json).into()),
        }
    };
    let to = match to {
        Location::Folder(path) => {
            let path = std::path::absolute(path)?;
            path.to_str().ok_or("the folder's name is not UTF-8")?.to_owned()
        }
        Location::Bucket(url) => url.to_string(),
    };
    let mut body = json!({"to": to, "with_keys": choices.with_keys, "full": choices.is_full});
    if let Some(of) = of {
        body["data_directory"] = of.into();
    }
    if let Some(tenant) = &choices.tenant {
        body["tenant_id"] = tenant.as_str().into();
    }
    let mut state = ask(Some(Payload::Json(&body)))?;
    while state["running"] == true {
        std::thread::park_timeout(POLL);
        state = ask(None)?;
    }
    let last = &state["last"];
    let made = &last["backup"];
    let Some(id) = made["backup_id"].as_str() else {
        let error = last["error"].as_str().unwrap_or("the server was restarted during the backup");
        return Err(format!("the backup failed: {error}").into());
    };
    let number = |name: &str| made[name].as_u64().unwrap_or(0);
    let tenants = made["tenant_ids"].as_array().map_or(0, Vec::len);
    let damage = made["damage"].as_array().into_iter().flatten();
    damage.filter_map(Value::as_str).for_each(|damage| println!("{damage}"));
    told(id, tenants, number("bytes"), number("new_bytes"), number("new_files"));
    let left_out = made["left_out"].as_array().into_iter().flatten();
    let text = |one: &'_ Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let left_out: Vec<(String, String)> =
        left_out.map(|one| (text(one, "tenant_id"), text(one, "reason"))).collect();
    let missing = made["missing_originals"].as_object().into_iter().flatten();
    let missing = missing.map(|(tenant, count)| (&**tenant, count.as_u64().unwrap_or(0)));
    refuse_lacking(left_out.iter().map(|(tenant, reason)| (&**tenant, &**reason)), missing)
}
