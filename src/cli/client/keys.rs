//! `lodestone key`: manages the API keys of a server.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, confirm, moment, print_table};
use super::{ClientVerb, EXIT_CODES};
use crate::cli::transport::escaped;

const PATH: &str = "/admin/api_keys";

/// List, create and revoke API keys; requires an admin key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct KeyOptions {
    #[command(subcommand)]
    verb: KeyVerb,
    #[command(flatten)]
    server: ServerOptions,
}

/// Operations on keys.
#[derive(Debug, Subcommand)]
enum KeyVerb {
    /// List keys, without their secrets.
    Ls,
    /// Create a key; it is printed only this once.
    Create {
        /// Display name.
        name: String,
        /// Role, which determines the permitted operations.
        #[arg(long, value_enum)]
        role: KeyRole,
        /// Only this tenant, or this sub-tenant. May be repeated [default: all tenants].
        #[arg(long, value_name = "TENANT[/SUB_TENANT]")]
        scope: Vec<String>,
        /// Expiry time, RFC 3339 or seconds since 1970 [default: none].
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// Revoke a key with immediate effect.
    Revoke {
        /// Key id, as listed by `lodestone key ls`.
        id: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// Roles of keys.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum KeyRole {
    /// Search, ask and list.
    Read,
    /// Additionally upload and delete sources.
    Write,
    /// Additionally manage tenants and keys.
    Admin,
}

impl ClientVerb for KeyOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        match &self.verb {
            KeyVerb::Ls => connection.get(PATH.to_owned(), |answer| {
                let rows = answer["api_keys"].as_array().into_iter().flatten().map(row).collect();
                print_table(&["ID", "NAME", "ROLE", "SCOPE", "CREATED", "EXPIRES"], rows);
            }),
            KeyVerb::Create { name, role, scope, expires_at } => {
                let role = match role {
                    KeyRole::Read => "read",
                    KeyRole::Write => "write",
                    KeyRole::Admin => "admin",
                };
                let mut body = json!({"name": name, "role": role});
                if !scope.is_empty() {
                    body["tenants"] = tenants(scope);
                }
                if let Some(end) = expires_at {
                    body["expires_at"] = end.as_str().into();
                }
                connection.make(PATH, &body, "key_id", |answer| cell(&answer["api_key"]))
            }
            KeyVerb::Revoke { id, yes } => {
                confirm(&format!("revoke key {id}"), *yes)?;
                let path = format!("{PATH}/{}", escaped(id));
                connection.delete(path, |answer| println!("{}", cell(&answer["key_id"])))
            }
        }
    }
}

/// Converts scopes to the form of the API: each tenant once, with its sub-tenants or all of them.
pub(super) fn tenants(scopes: &[String]) -> Value {
    let mut listed: Vec<(&str, Option<Vec<&str>>)> = Vec::new();
    for scope in scopes {
        let (tenant, sub_tenant) = match scope.split_once('/') {
            Some((tenant, sub_tenant)) => (tenant, Some(sub_tenant)),
            None => (scope.as_str(), None),
        };
        let added = sub_tenant.map(|name| vec![name]);
        match listed.iter_mut().find(|(known, _)| *known == tenant) {
            Some((_, subs)) => {
                *subs = subs.take().zip(added).map(|(subs, added)| [subs, added].concat());
            }
            None => listed.push((tenant, added)),
        }
    }
    let scope = |(tenant, subs): (&str, Option<Vec<&str>>)| match subs {
        Some(subs) => json!({"tenant_id": tenant, "sub_tenant_ids": subs}),
        None => json!({"tenant_id": tenant}),
    };
    listed.into_iter().map(scope).collect()
}

/// Formats the scope of a key or webhook in one line.
pub(super) fn scopes(tenants: &Value) -> String {
    let scope = |one: &Value| {
        let subs: Vec<String> =
            one["sub_tenant_ids"].as_array().into_iter().flatten().map(cell).collect();
        match subs.is_empty() {
            true => cell(&one["tenant_id"]),
            false => format!("{}/{}", cell(&one["tenant_id"]), subs.join("+")),
        }
    };
    match tenants.as_array() {
        Some(tenants) if tenants.is_empty() => "none (tenant deleted)".to_owned(),
        Some(tenants) => tenants.iter().map(scope).collect::<Vec<_>>().join(","),
        None => "all".to_owned(),
    }
}

fn row(key: &Value) -> Vec<String> {
    vec![
        cell(&key["key_id"]),
        cell(&key["name"]),
        cell(&key["role"]),
        scopes(&key["tenants"]),
        moment(&key["created_at"]),
        moment(&key["expires_at"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_without_tenants_is_not_all_of_them() {
        assert_eq!(super::scopes(&json!([])), "none (tenant deleted)");
        assert_eq!(super::scopes(&Value::Null), "all");
    }

    #[test]
    fn scopes_of_one_tenant_are_joined() {
        let scopes = ["a/x", "b", "a/y", "c/z", "c"].map(str::to_owned);
        let expected = json!([
            {"tenant_id": "a", "sub_tenant_ids": ["x", "y"]}, {"tenant_id": "b"},
            {"tenant_id": "c"},
        ]);
        assert_eq!(tenants(&scopes), expected);
    }
}
