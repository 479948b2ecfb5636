//! `lodestone memory`: manages the personal memories of a sub-tenant.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, confirm, moment, print_table};
use super::{ClientVerb, EXIT_CODES};

/// Add, list, delete and search memories.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct MemoryOptions {
    #[command(subcommand)]
    verb: MemoryVerb,
    #[command(flatten)]
    server: ServerOptions,
}

/// Operations on memories.
#[derive(Debug, Subcommand)]
enum MemoryVerb {
    /// Add a memory; prints its id.
    Add {
        /// Text of the memory.
        text: String,
        /// Seconds until the memory expires [default: never].
        #[arg(long, value_name = "SECONDS")]
        expires_in: Option<u64>,
    },
    /// List memories, newest first.
    Ls,
    /// Delete a memory.
    Rm {
        /// Memory id.
        id: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Find memories relevant to a query.
    Search {
        /// Query text.
        query: String,
        /// Maximum number of memories.
        #[arg(long, short = 'n', default_value_t = 10, value_name = "N")]
        limit: u32,
    },
}

impl ClientVerb for MemoryOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        match &self.verb {
            MemoryVerb::Add { text, expires_in } => {
                let members = json!({"user_memory": text, "expiry_time": expires_in});
                let body = connection.body(members)?;
                connection.post("/user_memory/add_user_memory", &body, |answer| {
                    println!("{}", cell(&answer["memory_id"]));
                })
            }
            MemoryVerb::Ls => {
                let path = connection.scoped("/user_memory/list_user_memories", &[])?;
                connection.get(path, |answer| print(&answer["user_memories"]))
            }
            MemoryVerb::Rm { id, yes } => {
                confirm(&format!("delete memory {id}"), *yes)?;
                let pairs = [("memory_id", id.as_str())];
                let path = connection.scoped("/user_memory/delete_user_memory", &pairs)?;
                connection.delete(path, |_| println!("{}", cell(&json!(id))))
            }
            MemoryVerb::Search { query, limit } => {
                let pairs = [("max_count", &*limit.to_string())];
                let path = connection.scoped("/user_memory/retrieve_user_memory", &pairs)?;
                connection.post(path, &json!({"query": query}), |answer| {
                    print(&answer["retrieved_user_memories"]);
                })
            }
        }
    }
}

fn print(memories: &Value) {
    let row = |memory: &Value| {
        vec![
            cell(&memory["memory_id"]),
            moment(&memory["created_at"]),
            moment(&memory["expires_at"]),
            cell(&memory["memory_content"]),
        ]
    };
    let rows = memories.as_array().into_iter().flatten().map(row).collect();
    print_table(&["ID", "CREATED", "EXPIRES", "TEXT"], rows);
}
