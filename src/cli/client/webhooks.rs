//! `lodestone webhook`: manages the webhooks of a server.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::keys::{scopes, tenants};
use super::options::ServerOptions;
use super::screen::{cell, confirm, moment, print_table};
use super::{ClientVerb, EXIT_CODES};
use crate::cli::transport::escaped;

const PATH: &str = "/admin/webhooks";

/// List, add, test and remove webhooks, and list their deliveries; requires an admin key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct WebhookOptions {
    #[command(subcommand)]
    verb: WebhookVerb,
    #[command(flatten)]
    server: ServerOptions,
}

/// Operations on webhooks.
#[derive(Debug, Subcommand)]
enum WebhookVerb {
    /// List webhooks, without their secrets.
    Ls,
    /// Add a webhook; the secret that signs its messages is printed only this once.
    Add {
        /// URL of the receiver, http or https.
        url: String,
        /// Only this type of event: source.success, source.errored, source.deleted or jobs.drained.
        /// May be repeated [default: all].
        #[arg(long, value_name = "KIND")]
        event: Vec<String>,
        /// Only events of this tenant, or of this sub-tenant. May be repeated [default: all
        /// tenants].
        #[arg(long, value_name = "TENANT[/SUB_TENANT]")]
        scope: Vec<String>,
        /// Description for people.
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
    },
    /// Send a test message, and print the result.
    Test {
        /// Webhook id, as listed by `lodestone webhook ls`.
        id: String,
    },
    /// List the deliveries of a webhook, newest first.
    Deliveries {
        /// Webhook id.
        id: String,
        /// Maximum number of deliveries.
        #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
        limit: u32,
    },
    /// Remove a webhook with its pending events and its log.
    Rm {
        /// Webhook id.
        id: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

impl ClientVerb for WebhookOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let rows = |list: &Value, row: fn(&Value) -> Vec<String>| {
            list.as_array().into_iter().flatten().map(row).collect()
        };
        match &self.verb {
            WebhookVerb::Ls => connection.get(PATH.to_owned(), |answer| {
                let head = ["ID", "URL", "EVENTS", "SCOPE", "STATE", "WAITING", "FAILING SINCE"];
                print_table(&head, rows(&answer["webhooks"], webhook));
            }),
            WebhookVerb::Add { url, event, scope, description } => {
                let mut body = json!({"url": url, "description": description});
                if !event.is_empty() {
                    body["events"] = event.as_slice().into();
                }
                if !scope.is_empty() {
                    body["tenants"] = tenants(scope);
                }
                connection.make(PATH, &body, "webhook_id", |answer| {
                    format!("{}\n{}", cell(&answer["webhook_id"]), cell(&answer["secret"]))
                })
            }
            WebhookVerb::Test { id } => {
                let mut problem = None;
                connection.post(format!("{PATH}/{}/test", escaped(id)), &json!({}), |answer| {
                    match answer["delivered"] == true {
                        true => println!("{} delivered", cell(&answer["event_id"])),
                        false => problem = Some(cell(&answer["problem"])),
                    }
                })?;
                problem.map_or(Ok(()), |problem| Err(Failure::Failed(problem)))
            }
            WebhookVerb::Deliveries { id, limit } => {
                let path = format!("{PATH}/{}/deliveries?limit={limit}", escaped(id));
                connection.get(path, |answer| {
                    let head =
                        ["EVENT", "KIND", "SOURCE", "STATE", "ATTEMPTS", "LAST", "NEXT", "PROBLEM"];
                    print_table(&head, rows(&answer["deliveries"], delivery));
                })
            }
            WebhookVerb::Rm { id, yes } => {
                confirm(&format!("remove webhook {id}"), *yes)?;
                let path = format!("{PATH}/{}", escaped(id));
                connection.delete(path, |answer| println!("{}", cell(&answer["webhook_id"])))
            }
        }
    }
}

fn webhook(one: &Value) -> Vec<String> {
    let events: Vec<String> = one["events"].as_array().into_iter().flatten().map(cell).collect();
    vec![
        cell(&one["webhook_id"]),
        cell(&one["url"]),
        events.join(","),
        scopes(&one["tenants"]),
        cell(&one["state"]),
        cell(&one["pending"]),
        moment(&one["failing_since"]),
    ]
}

fn delivery(one: &Value) -> Vec<String> {
    vec![
        cell(&one["event_id"]),
        cell(&one["type"]),
        cell(&one["file_id"]),
        cell(&one["state"]),
        cell(&one["attempts"]),
        moment(&one["attempted_at"]),
        moment(&one["next_attempt_at"]),
        cell(&one["problem"]),
    ]
}
