//! `lodestone tenant`: manages the tenants of a server.

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, confirm, moment, print_pairs, print_table};
use super::{ClientVerb, EXIT_CODES};
use crate::cli::transport::{Request, query};

/// List, create and delete tenants; show their usage and set their limits.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct TenantOptions {
    #[command(subcommand)]
    verb: TenantVerb,
    #[command(flatten)]
    server: ServerOptions,
}

/// Operations on tenants.
#[derive(Debug, Subcommand)]
enum TenantVerb {
    /// List tenants; requires an admin key.
    Ls,
    /// Create a tenant; requires an admin key for all tenants.
    Create {
        /// Tenant id.
        id: String,
        /// Create a tenant for your own vectors, compared by this metric: cosine, dot or l2.
        #[arg(long, value_name = "METRIC", value_parser = ["cosine", "dot", "l2"])]
        vectors: Option<String>,
        /// Embedding model for its texts, one of the server's [default: the model of new tenants].
        #[arg(long, value_name = "NAME", conflicts_with = "vectors")]
        embedding_model: Option<String>,
        #[command(flatten)]
        limits: LimitOptions,
    },
    /// Delete a tenant with everything in it; requires an admin key.
    Rm {
        /// Tenant id.
        id: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Show the storage used by a tenant, and its limits; requires a key for all of its
    /// sub-tenants.
    Usage {
        /// Tenant id [default: the tenant of --tenant, LODESTONE_TENANT or the profile].
        id: Option<String>,
    },
    /// Show the limits of a tenant, or change the given ones and keep the others. Changes require
    /// an admin key for all tenants.
    Limits {
        /// Tenant id.
        id: String,
        #[command(flatten)]
        limits: LimitOptions,
    },
    /// Count the contents of a tenant.
    Stats {
        /// Tenant id [default: the tenant of --tenant, LODESTONE_TENANT or the profile].
        id: Option<String>,
    },
}

/// Limits of a tenant: a number each, or `none` for the server's setting.
#[derive(Debug, Args)]
struct LimitOptions {
    /// Maximum number of sources, in any state, or none; memories do not count.
    #[arg(long, value_name = "SOURCES|none", value_parser = limit)]
    max_sources: Option<Value>,
    /// Maximum bytes of stored originals, or none.
    #[arg(long, value_name = "BYTES|none", value_parser = limit)]
    max_bytes: Option<Value>,
    /// Maximum number of vectors, or none: client vectors and chunks of documents and memories.
    #[arg(long, value_name = "VECTORS|none", value_parser = limit)]
    max_vectors: Option<Value>,
    /// Maximum number of requests in any 60 seconds, or none.
    #[arg(long, value_name = "REQUESTS|none", value_parser = limit)]
    max_requests_per_minute: Option<Value>,
    /// Maximum number of workers that process its documents at the same time, or none.
    #[arg(long, value_name = "WORKERS|none", value_parser = limit)]
    max_ingest_workers: Option<Value>,
}

/// Parses a limit in API form: a number, or null for the server's setting.
fn limit(text: &str) -> Result<Value, String> {
    match text {
        "none" => Ok(Value::Null),
        number => number
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_| "must be a whole number, or none (the limit of the settings)".to_owned()),
    }
}

impl LimitOptions {
    /// Builds a body with the limits that were given.
    fn body(&self) -> Map<String, Value> {
        let limits = [
            ("max_sources", &self.max_sources),
            ("max_bytes", &self.max_bytes),
            ("max_vectors", &self.max_vectors),
            ("max_requests_per_minute", &self.max_requests_per_minute),
            ("max_ingest_workers", &self.max_ingest_workers),
        ];
        let given = limits.into_iter().filter_map(|(name, limit)| Some((name, limit.clone()?)));
        given.map(|(name, limit)| (name.to_owned(), limit)).collect()
    }
}

impl ClientVerb for TenantOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        match &self.verb {
            TenantVerb::Ls => connection.get("/tenant/list".to_owned(), |answer| {
                let row = |tenant: &Value| {
                    vec![
                        cell(&tenant["tenant_id"]),
                        cell(&tenant["mode"]),
                        moment(&tenant["created_at"]),
                        cell(&tenant["embedding_model"]),
                        cell(&tenant["vector_dimension"]),
                    ]
                };
                let rows = answer["tenants"].as_array().into_iter().flatten().map(row).collect();
                print_table(&["TENANT", "MODE", "CREATED", "MODEL", "DIMENSION"], rows);
            }),
            TenantVerb::Create { id, vectors, embedding_model, limits } => {
                let path = match vectors {
                    None => format!("/user/create_tenant{}", query(&[("tenant_id", id)])),
                    Some(metric) => {
                        let pairs = [("tenant_id", id.as_str()), ("metric", metric)];
                        format!("/embeddings/create_tenant{}", query(&pairs))
                    }
                };
                let mut body = limits.body();
                if let Some(name) = embedding_model {
                    body.insert("embedding_model".to_owned(), name.as_str().into());
                }
                connection.post(path, &body.into(), |answer| {
                    println!("{}", cell(&answer["tenant_id"]));
                })
            }
            TenantVerb::Rm { id, yes } => {
                confirm(&format!("delete tenant {id} with everything in it"), *yes)?;
                let pairs = [("tenant_id", id.as_str()), ("confirm", id.as_str())];
                let path = format!("/tenant/delete{}", query(&pairs));
                connection.delete(path, |answer| println!("{}", cell(&answer["tenant_id"])))
            }
            TenantVerb::Usage { id } => {
                let id = id.as_deref().map_or_else(|| connection.tenant(), Ok)?;
                connection.get(usage_path(id), print_usage)
            }
            TenantVerb::Limits { id, limits } => change_limits(&connection, id, limits.body()),
            TenantVerb::Stats { id } => stats(&connection, id.as_deref()),
        }
    }
}

fn usage_path(id: &str) -> String {
    format!("/tenant/usage{}", query(&[("tenant_id", id)]))
}

/// Changes the `given` limits. The server replaces all limits at once, so the others are sent with
/// their current values. Without any given, shows the limits.
fn change_limits(
    connection: &Connection,
    id: &str,
    given: Map<String, Value>,
) -> Result<(), Failure> {
    if given.is_empty() {
        return connection.get(usage_path(id), print_usage);
    }
    let (_, usage) = connection.answer(&Request { path: usage_path(id), body: None })?;
    let own = usage["own_limits"].as_object().cloned();
    let mut body = own.ok_or_else(|| {
        Failure::Failed("the server's response lacks the tenant's own limits".to_owned())
    })?;
    body.extend(given);
    body.insert("tenant_id".to_owned(), id.into());
    connection.post("/admin/tenant_limits", &body.into(), print_usage)
}

fn print_usage(answer: &Value) {
    let limit = |name: &str| match &answer["limits"][name] {
        Value::Null => "no limit".to_owned(),
        limit => cell(limit),
    };
    print_pairs(&[
        ("tenant", cell(&answer["tenant_id"])),
        ("sources", cell(&answer["sources"])),
        ("sources at most", limit("max_sources")),
        ("bytes", cell(&answer["bytes"])),
        ("bytes at most", limit("max_bytes")),
        ("vectors", cell(&answer["vectors"])),
        ("vectors at most", limit("max_vectors")),
        ("requests in the last minute", cell(&answer["requests_last_minute"])),
        ("requests per minute at most", limit("max_requests_per_minute")),
        ("ingest workers", cell(&answer["ingest_workers"])),
        ("ingest workers at most", limit("max_ingest_workers")),
    ]);
}

fn stats(connection: &Connection, id: Option<&str>) -> Result<(), Failure> {
    let id = match id {
        Some(id) => id,
        None => connection.tenant()?,
    };
    let pairs = [("tenant_id", id), ("sub_tenant_id", connection.sub_tenant())];
    connection.get(format!("/tenant/stats{}", query(&pairs)), |answer| {
        let names = [
            ("tenant", "tenant_id"),
            ("sub-tenant", "sub_tenant_id"),
            ("mode", "mode"),
            ("metric", "metric"),
            ("sources", "source_count"),
            ("chunks or vectors", "object_count"),
            ("in all sub-tenants", "tenant_object_count"),
            ("memories", "memory_count"),
            ("model", "embedding_model"),
            ("dimension", "vector_dimension"),
        ];
        print_pairs(&names.map(|(shown, name)| (shown, cell(&answer[name]))));
    })
}
