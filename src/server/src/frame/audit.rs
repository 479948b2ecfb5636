//! The audit log of administrative actions: who did what, from which address, and with which
//! outcome.
//!
//! An action is logged if it is a change that requires the admin role, or a deletion of any kind by
//! a key with that role. Keys appear by id and tenants by the id of their collection, which names
//! their folder below `v1/c`: no log contains secrets or names.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::response::Response;
use http::Method;

use crate::error::ApiError;
use crate::routes::RouteSpec;
use lodestone_types::{Grant, Role};

/// The object that an operation has changed, filled in by its handler.
pub type Subject = Arc<OnceLock<String>>;

/// An administrative action in progress.
#[derive(Debug)]
pub struct Act<'a> {
    spec: &'a RouteSpec,
    grant: &'a Grant,
    request_id: &'a str,
    from: Option<IpAddr>,
    /// The address of the client behind a query node, as reported by the caller and not verified.
    passed_for: Option<&'a str>,
    /// The object changed; filled in by the handler.
    pub subject: Subject,
}

impl<'a> Act<'a> {
    /// Begins the record of a request; returns `None` if it is not an administrative action.
    pub fn begin(
        spec: &'a RouteSpec,
        grant: Option<&'a Grant>,
        request_id: &'a str,
        from: Option<IpAddr>,
        passed_for: Option<&'a str>,
    ) -> Option<Self> {
        let grant = grant?;
        let is_change = spec.method != Method::GET;
        let is_admins = spec.role == Some(Role::Admin) || spec.deletes && grant.role == Role::Admin;
        let subject = Subject::default();
        let act = Self { spec, grant, request_id, from, passed_for, subject };
        (is_change && is_admins).then_some(act)
    }

    /// Logs the action with its outcome.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::table;
    use lodestone_types::KeyScope;

    /// Goal: whatever interface an administrator deletes through, the deletion is logged.
    #[test]
    fn all_that_an_admin_key_deletes_is_logged() {
        for route in table() {
            let spec = route.spec;
            let is_act = |role| {
                let grant = Grant::new("key", role, KeyScope::AllTenants);
                Act::begin(&spec, Some(&grant), "r", None, None).is_some()
            };
            let is_admins = spec.role == Some(Role::Admin) && spec.method != Method::GET;
            assert!(spec.deletes || spec.method != Method::DELETE, "{}", spec.path);
            assert_eq!(is_act(Role::Admin), is_admins || spec.deletes, "{}", spec.path);
            assert_eq!(is_act(Role::Write), is_admins, "{}", spec.path);
        }
        let others: Vec<&str> = table()
            .iter()
            .filter(|route| route.spec.deletes && route.spec.method != Method::DELETE)
            .map(|route| route.spec.path)
            .collect();
        assert_eq!(others, ["/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel"]);
    }
}
