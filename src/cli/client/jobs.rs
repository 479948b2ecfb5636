//! `lodestone jobs`: lists processing jobs and retries failed ones.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, moment, one_line, print_table};
use super::{ClientVerb, EXIT_CODES};
use crate::cli::transport::{escaped, query};

/// List ingestion jobs, and retry failed ones.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct JobsOptions {
    #[command(subcommand)]
    verb: JobsVerb,
    #[command(flatten)]
    server: ServerOptions,
}

/// Operations on jobs.
#[derive(Debug, Subcommand)]
enum JobsVerb {
    /// List jobs, newest first; without a tenant, the jobs of all tenants visible to the key.
    Ls {
        /// Only jobs in this state: queued, in_progress, success or errored.
        #[arg(long)]
        status: Option<String>,
        /// Maximum number of jobs.
        #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
        limit: u32,
    },
    /// Process failed jobs again, from the originals stored on the server.
    Retry {
        /// Job ids, as listed by `lodestone jobs ls`.
        #[arg(required = true, value_name = "JOB")]
        ids: Vec<String>,
    },
}

impl ClientVerb for JobsOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let sub_tenant = Some(connection.sub_tenant()).filter(|name| !name.is_empty());
        let scope = [("tenant_id", connection.tenant_if_named()), ("sub_tenant_id", sub_tenant)];
        let named = |(name, value): (&'static str, _)| Some((name, value?));
        let mut pairs: Vec<(&str, &str)> = scope.into_iter().filter_map(named).collect();
        let (status, limit) = match &self.verb {
            JobsVerb::Ls { status, limit } => (status.as_deref(), limit.to_string()),
            JobsVerb::Retry { ids } => return retry(&connection, ids, &query(&pairs)),
        };
        pairs.extend(status.map(|status| ("status", status)));
        pairs.push(("limit", &limit));
        connection.get(format!("/jobs{}", query(&pairs)), |answer| {
            let rows = answer["jobs"].as_array().into_iter().flatten().map(row).collect();
            let head =
                ["STATUS", "TENANT", "SOURCE", "KIND", "STAGE", "UPLOADED", "MESSAGE", "JOB"];
            print_table(&head, rows);
        })
    }
}

/// Retries jobs one after the other and reports those that are refused. If all failures are of one
/// kind, so is the failure returned.
fn retry(connection: &Connection, ids: &[String], scope: &str) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for id in ids {
        let path = format!("/jobs/{}/retry{scope}", escaped(id));
        let tried = connection.post(path, &json!({}), |answer| {
            let job = &answer["job"];
            println!("{} {}", cell(&job["job_id"]), cell(&job["status"]));
        });
        if let Err(failure) = tried {
            if ids.len() > 1 {
                eprintln!("{}: {failure}", one_line(id));
            }
            failures.push(failure);
        }
    }
    let count = failures.len();
    let Some(last) = failures.pop() else { return Ok(()) };
    if ids.len() == 1 {
        return Err(last);
    }
    let told = format!("{count} of {} jobs were not retried", ids.len());
    let is_alike = |one: &Failure| one.exit_code() == last.exit_code();
    Err(if failures.iter().all(is_alike) { last.told(told) } else { Failure::Failed(told) })
}

fn row(job: &Value) -> Vec<String> {
    let tenant = match job["sub_tenant_id"].as_str() {
        None | Some("default") => cell(&job["tenant_id"]),
        Some(_) => format!("{}/{}", cell(&job["tenant_id"]), cell(&job["sub_tenant_id"])),
    };
    let message = match job["error_code"].as_str() {
        None | Some("") => cell(&job["message"]),
        Some(_) => format!("{}: {}", cell(&job["error_code"]), cell(&job["message"])),
    };
    vec![
        cell(&job["status"]),
        tenant,
        cell(&job["file_id"]),
        cell(&job["kind"]),
        cell(&job["stage"]),
        moment(&job["created_at"]),
        message,
        cell(&job["job_id"]),
    ]
}
