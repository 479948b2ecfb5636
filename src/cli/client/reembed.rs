//! `lodestone reembed`: changes the embedding model of tenants of a running server.

use clap::Args;
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, confirm, moment, print_table};
use super::{ClientVerb, EXIT_CODES};
use crate::cli::transport::{Request, query};

/// Re-embed tenants with another model of the server, switch back, or show the progress; requires
/// an admin key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct ReembedOptions {
    /// Estimate the work without changing anything.
    #[arg(long)]
    dry_run: bool,
    /// Show the models and the progress without changing anything.
    #[arg(long, conflicts_with = "dry_run")]
    status: bool,
    /// Switch back to the previous vectors; sources added since are embedded first.
    #[arg(long, conflicts_with_all = ["dry_run", "status"])]
    back: bool,
    /// Discard the vectors that are not searched: the previous ones, or those being built.
    #[arg(long, conflicts_with_all = ["dry_run", "status", "back"])]
    discard: bool,
    /// Do not ask for confirmation before discarding the vectors of all tenants.
    #[arg(long, requires = "discard")]
    yes: bool,
    /// Name of the loaded model to which the tenant is moved [default: the model of new tenants].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["status", "back", "discard"])]
    to: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

impl ClientVerb for ReembedOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let tenant = connection.tenant_if_named();
        if self.status {
            let pairs: Vec<(&str, &str)> = tenant.map(|id| ("tenant_id", id)).into_iter().collect();
            return connection.get(format!("/admin/reembed{}", query(&pairs)), show_states);
        }
        if self.discard && tenant.is_none() {
            self.confirm_all(&connection)?;
        }
        let action = match (self.back, self.discard) {
            (true, _) => "back",
            (_, true) => "discard",
            _ => "start",
        };
        let mut body = json!({"action": action, "dry_run": self.dry_run});
        if let Some(tenant) = tenant {
            body["tenant_id"] = tenant.into();
        }
        if let Some(to) = &self.to {
            body["to"] = to.as_str().into();
        }
        let show = if self.dry_run { show_estimates } else { show_states };
        connection.post("/admin/reembed", &body, show)
    }
}

impl ReembedOptions {
    /// Lists the tenants concerned and asks before the vectors of all of them are discarded.
    fn confirm_all(&self, connection: &Connection) -> Result<(), Failure> {
        let (_, answer) =
            connection.answer(&Request { path: "/admin/reembed".to_owned(), body: None })?;
        let with_others = tenants(&answer).filter(|tenant| !tenant["other_model"].is_null());
        let names: Vec<String> = with_others.map(|tenant| cell(&tenant["tenant_id"])).collect();
        match names.is_empty() {
            true => Ok(()),
            false => {
                let what = "discard the vectors not in use of";
                confirm(&format!("{what} {}", names.join(", ")), self.yes)
            }
        }
    }
}

fn tenants(answer: &Value) -> impl Iterator<Item = &Value> {
    answer["tenants"].as_array().into_iter().flatten()
}

fn show_estimates(answer: &Value) {
    for tenant in tenants(answer) {
        let estimate = &tenant["estimate"];
        if estimate.is_null() {
            println!("{}: {}", cell(&tenant["tenant_id"]), cell(&tenant["reason"]));
            continue;
        }
        let of = |name: &str| cell(&estimate[name]);
        let rate = estimate["chunks_per_second"].as_f64().unwrap_or(0.0);
        let seconds = estimate["seconds"].as_f64().unwrap_or(0.0);
        let (id, model) = (cell(&tenant["tenant_id"]), cell(&tenant["model"]));
        let model = if model.is_empty() { "no vectors yet".to_owned() } else { model };
        println!(
            "{id} ({model}): {} chunks, {} tokens; {seconds:.0} s at {rate:.1} chunks a second; {} \
             bytes of disk, of which {} are free",
            of("chunks"),
            of("tokens"),
            of("disk_bytes"),
            of("free_bytes"),
        );
    }
}

fn show_states(answer: &Value) {
    let row = |tenant: &Value| {
        let done = match tenant["status"].as_str() {
            None => String::new(),
            Some(_) => format!("{} of {}", cell(&tenant["chunks_done"]), cell(&tenant["chunks"])),
        };
        vec![
            cell(&tenant["tenant_id"]),
            cell(&tenant["model"]),
            cell(&tenant["status"]),
            done,
            cell(&tenant["other_model"]),
            moment(&tenant["kept_until"]),
            cell(&tenant["reason"]),
        ]
    };
    let head = ["TENANT", "MODEL", "STATUS", "CHUNKS", "OTHER MODEL", "KEPT UNTIL", "MESSAGE"];
    print_table(&head, tenants(answer).map(row).collect());
}
