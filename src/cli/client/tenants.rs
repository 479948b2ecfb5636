//! `lodestone tenant`: tenants of a server.

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, confirm, moment, print_pairs, print_table};
use super::{ClientVerb, EXIT_CODES};
use crate::cli::transport::query;

/// List, create, delete and count tenants.
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
    /// List tenants; needs an admin key.
    Ls,
    /// Create a tenant; needs an admin key for all tenants.
    Create {
        /// Its id.
        id: String,
        /// Make it a tenant for vectors of your own, compared by cosine, dot or l2.
        #[arg(long, value_name = "METRIC", value_parser = ["cosine", "dot", "l2"])]
        vectors: Option<String>,
        /// Model that reads its texts, one of the server's [default: that of new tenants].
        #[arg(long, value_name = "NAME", conflicts_with = "vectors")]
        embedding_model: Option<String>,
        #[command(flatten)]
        limits: LimitOptions,
    },
    /// Delete a tenant with everything in it; needs an admin key.
    Rm {
        /// Its id.
        id: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Tell how much a tenant stores, and its limits; needs a key for all of its sub-tenants.
    Usage {
        /// Its id [default: the tenant of --tenant, LODESTONE_TENANT or the profile].
        id: Option<String>,
    },
    /// Set the limits of a tenant, all at once: one that is not given follows the server's
    /// settings. Needs an admin key for all tenants.
    Limits {
        /// Its id.
        id: String,
        #[command(flatten)]
        limits: LimitOptions,
    },
    /// Count what a tenant holds.
    Stats {
        /// Its id [default: the tenant of --tenant, LODESTONE_TENANT or the profile].
        id: Option<String>,
    },
}

/// Limits of a tenant.
#[derive(Debug, Args)]
struct LimitOptions {
    /// Sources that it may have, in every state; memories are not counted.
    #[arg(long, value_name = "SOURCES")]
    max_sources: Option<u64>,
    /// Bytes of originals that it may store.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Vectors that it may store: client vectors, chunks of documents and of memories.
    #[arg(long, value_name = "VECTORS")]
    max_vectors: Option<u64>,
    /// Requests in any 60 seconds that it may make.
    #[arg(long, value_name = "REQUESTS")]
    max_requests_per_minute: Option<u64>,
    /// Workers that process its documents at once.
    #[arg(long, value_name = "WORKERS")]
    max_ingest_workers: Option<u64>,
}

impl LimitOptions {
    /// A body with the limits that are given.
    fn body(&self) -> Map<String, Value> {
        let limits = [
            ("max_sources", self.max_sources),
            ("max_bytes", self.max_bytes),
            ("max_vectors", self.max_vectors),
            ("max_requests_per_minute", self.max_requests_per_minute),
            ("max_ingest_workers", self.max_ingest_workers),
        ];
        let given = limits.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
        given.map(|(name, limit)| (name.to_owned(), limit.into())).collect()
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
                let path = format!("/tenant/usage{}", query(&[("tenant_id", id)]));
                connection.get(path, print_usage)
            }
            TenantVerb::Limits { id, limits } => {
                let mut body = limits.body();
                body.insert("tenant_id".to_owned(), id.as_str().into());
                connection.post("/admin/tenant_limits".to_owned(), &body.into(), print_usage)
            }
            TenantVerb::Stats { id } => stats(&connection, id.as_deref()),
        }
    }
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
