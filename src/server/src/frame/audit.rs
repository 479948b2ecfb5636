//! The audit log: acts of administration, each with who, from where, what and its outcome.
//!
//! An act is a change by an operation that needs the role admin, or a deletion of sources by a key
//! with that role. Keys are named by their ids and tenants by those of their collections, which
//! name their folders below `v1/c`: no log tells secrets or names (API 7 #60).

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::response::Response;
use http::Method;

use crate::error::ApiError;
use crate::routes::{Group, RouteSpec};
use lodestone_types::{Grant, Role};

/// The thing that an operation has changed, told by its handler.
pub type Subject = Arc<OnceLock<String>>;

/// An act that has begun.
#[derive(Debug)]
pub struct Act<'a> {
    spec: &'a RouteSpec,
    grant: &'a Grant,
    request_id: &'a str,
    from: Option<IpAddr>,
    /// The client behind a query node, as that says.
    passed_for: Option<&'a str>,
    /// Filled in by the handler.
    pub subject: Subject,
}

impl<'a> Act<'a> {
    /// The act behind a request; `None` where it is none.
    pub fn begin(
        spec: &'a RouteSpec,
        grant: Option<&'a Grant>,
        request_id: &'a str,
        from: Option<IpAddr>,
        passed_for: Option<&'a str>,
    ) -> Option<Self> {
        let grant = grant?;
        let is_change = spec.method != Method::GET;
        let is_admins = spec.role == Some(Role::Admin)
            || spec.group == Group::Deletion && grant.role == Role::Admin;
        let subject = Subject::default();
        let act = Self { spec, grant, request_id, from, passed_for, subject };
        (is_change && is_admins).then_some(act)
    }

    /// Logs it with its outcome.
    pub fn end(self, outcome: &Result<Response, ApiError>) {
        let Self { spec, grant, request_id, from, passed_for, .. } = self;
        let RouteSpec { method, path: route, .. } = spec;
        let (outcome, reason) = match outcome {
            Ok(response) if response.status().is_success() => ("done", ""),
            Ok(response) if response.status().is_client_error() => ("refused", ""),
            Ok(_) => ("failed", ""),
            Err(error) if error.condition().row().0.is_server_error() => ("failed", error.reason()),
            Err(error) => ("refused", error.reason()),
        };
        let subject = self.subject.get().map_or("", String::as_str);
        let (key_id, role) = (&*grant.key_id, grant.role.as_str());
        let from = from.map(tracing::field::display);
        tracing::info!(
            target: "lodestone_audit",
            %method, route, subject, key_id, role, from, passed_for, request_id, outcome, reason,
            "act"
        );
    }
}
