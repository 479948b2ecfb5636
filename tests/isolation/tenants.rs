//! Operations on tenants, sub-tenants and keys.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::model::{Life, Mode, Role, SubTenant, TenantAt};
use crate::server::Ask;
use crate::walk::{BY_OPERATOR, Need, Sees, Walk};

/// The number of keys above which stale ones are revoked.
const KEYS_MAX: usize = 40;

impl Walk {
    /// Creates a tenant with a given key; scoped keys are refused without learning anything.
    pub fn create_tenant(&mut self, key: usize, tenant: TenantAt) {
        let (name, mode) =
            (self.model.tenants[tenant].name.clone(), self.model.tenants[tenant].mode);
        // Only the first tenant has a schema, in each of its lives.
        let has_schema = tenant == 0;
        let schema = json!([
            {"key": "region", "type": "string"},
            {"key": "level", "type": "number", "filterable": false},
        ]);
        let ask = match mode {
            Mode::Standard if has_schema => Ask::new("POST", "/user/create_tenant")
                .json(json!({"tenant_metadata_schema": schema})),
            Mode::Standard => Ask::new("POST", "/user/create_tenant"),
            Mode::Embeddings => Ask::new("POST", "/embeddings/create_tenant"),
        };
        let ask = ask.with("tenant_id", &name);
        let by = self.model.keys[key].clone();
        let is_allowed = by.role == Role::Admin && by.scope.is_none();
        let sees = if is_allowed { self.sees(tenant, "none") } else { Sees::default() };
        let reply = self.send(key, &ask, &sees);
        if !is_allowed {
            let reason =
                if by.role == Role::Admin { "insufficient_scope" } else { "insufficient_role" };
            return self.expect_refusal(&reply, 403, reason);
        }
        if self.model.tenants[tenant].life.is_some() {
            return self.expect_refusal(&reply, 409, "tenant_exists");
        }
        assert_eq!(reply.status, 200, "{}", reply.json());
        let home = self.codes.home();
        let mut life = Life::new(self.server.now(), has_schema && mode == Mode::Standard);
        life.sub_tenants.insert("default".to_owned(), SubTenant::new(home));
        let owner = &mut self.model.tenants[tenant];
        owner.life = Some(life);
        owner.lives += 1;
    }

    pub fn create_any_tenant(&mut self) {
        let tenant = self.seeded.below(self.model.tenants.len());
        let key = match self.seeded.chance(70) {
            true => BY_OPERATOR,
            false => self.seeded.below(self.model.keys.len()),
        };
        self.create_tenant(key, tenant);
    }

    /// Deletes a tenant. Its name may be reused, but its data and its keys' access never return.
    pub fn delete_tenant(&mut self) {
        let tenant = self.seeded.below(self.model.tenants.len());
        let key = match self.seeded.chance(50) {
            true => BY_OPERATOR,
            false => self.seeded.below(self.model.keys.len()),
        };
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("DELETE", "/tenant/delete");
        let ask = ask.with("tenant_id", &name).with("confirm", &name);
        let need =
            Need { role: Role::Admin, tenant, sub_tenant: None, mode: None, may_create: false };
        let sees = self.sees(tenant, "none");
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        if !self.model.keys[key].reaches_whole_tenant(tenant) {
            return self.expect_refusal(&reply, 403, "insufficient_scope");
        }
        assert_eq!(reply.status, 200, "{}", reply.json());
        let owner = &mut self.model.tenants[tenant];
        (owner.life, owner.mode) = (None, owner.planned);
        for scope in self.model.keys.iter_mut().filter_map(|key| key.scope.as_mut()) {
            scope.retain(|(at, _)| *at != tenant);
        }
        if self.seeded.chance(60) {
            self.create_tenant(BY_OPERATOR, tenant);
        }
        // Scopes may name a tenant that does not exist yet.
        self.make_keys_of(tenant);
        self.thin_out_keys();
    }

    fn thin_out_keys(&mut self) {
        while self.model.keys.len() > KEYS_MAX {
            let stale = self
                .model
                .keys
                .iter()
                .position(|key| key.scope.as_ref().is_some_and(|scope| scope.is_empty()));
            let Some(stale) = stale else { return };
            self.revoke(BY_OPERATOR, stale);
        }
    }

    /// Revokes a key by means of another; it gives no access from then on.
    fn revoke(&mut self, by: usize, key: usize) {
        let doomed = self.model.keys[key].clone();
        let ask = Ask::new("DELETE", &format!("/admin/api_keys/{}", doomed.id));
        let reply = self.send(by, &ask, &Sees::default());
        let by = &self.model.keys[by];
        if by.role < Role::Admin {
            return self.expect_refusal(&reply, 403, "insufficient_role");
        }
        if !by.sees(&doomed) {
            return self.expect_refusal(&reply, 404, "api_key_not_found");
        }
        assert_eq!(reply.status, 200, "{}", reply.json());
        let reply = self.server.send(Some(&doomed.secret), &Ask::new("GET", "/jobs"));
        self.search(&reply, &Sees::default());
        self.expect_refusal(&reply, 401, "invalid_api_key");
        self.model.keys.swap_remove(key);
    }

    pub fn delete_sub_tenant(&mut self) {
        let mode = if self.seeded.chance(70) { Mode::Standard } else { Mode::Embeddings };
        let (tenant, sub_tenant, key) = self.target(mode, Role::Admin);
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("DELETE", "/tenant/delete_sub_tenant").of(&name, sub_tenant);
        if sub_tenant == "default" {
            let reply = self.send(key, &ask, &Sees::default());
            return match self.model.keys[key].role {
                Role::Admin => self.expect_refusal(&reply, 400, "default_sub_tenant_protected"),
                _ => self.expect_refusal(&reply, 403, "insufficient_role"),
            };
        }
        let role = Role::Admin;
        let sub = Some(sub_tenant);
        let need = Need { role, tenant, sub_tenant: sub, mode: None, may_create: false };
        let sees = self.sees(tenant, "none");
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let life = self.model.tenants[tenant].life.as_mut().expect("it was asked");
        if life.sub_tenants.remove(sub_tenant).is_none() {
            return self.expect_refusal(&reply, 404, "sub_tenant_not_found");
        }
        life.sessions.retain(|(name, _), _| name != sub_tenant);
        assert_eq!(reply.status, 200, "{}", reply.json());
    }

    /// Lists the keys that a key may see: exactly those within its own scope.
    pub fn list_keys(&mut self) {
        let key = self.seeded.below(self.model.keys.len());
        let by = self.model.keys[key].clone();
        let others = self.model.keys.iter().filter(|other| by.sees(other));
        let mut sees = self.sees_names(key);
        sees.homes.extend(others.map(|other| other.home));
        let reply = self.send(key, &Ask::new("GET", "/admin/api_keys"), &sees);
        if by.role < Role::Admin {
            return self.expect_refusal(&reply, 403, "insufficient_role");
        }
        let body = reply.json();
        let listed = body["api_keys"].as_array().expect("keys").iter();
        let listed: BTreeSet<&str> =
            listed.filter_map(|listed| listed["key_id"].as_str()).collect();
        let others = self.model.keys.iter().filter(|other| by.sees(other));
        let expected: BTreeSet<&str> = others.map(|other| other.id.as_str()).collect();
        let expected: BTreeSet<&str> = expected.into_iter().filter(|id| !id.is_empty()).collect();
        assert_eq!(listed, expected);
    }

    /// A key creates another key, uses it and revokes it; or is refused one with a wider scope.
    pub fn lend_key(&mut self) {
        let maker = self.seeded.below(self.model.keys.len());
        let by = self.model.keys[maker].clone();
        let tenant = self.seeded.below(self.model.tenants.len());
        let name = self.model.tenants[tenant].name.clone();
        let is_whole = self.seeded.chance(50);
        let names: Value = if is_whole { Value::Null } else { json!(["east"]) };
        let scope = json!([{"tenant_id": name, "sub_tenant_ids": names}]);
        let body = json!({"name": "lent", "role": "read", "tenants": scope});
        let is_within = match is_whole {
            true => by.reaches_whole_tenant(tenant),
            false => by.reaches(tenant, "east"),
        };
        let mut sees = Sees::default();
        if is_within {
            sees.homes.insert(self.model.tenants[tenant].name_home);
        }
        let ask = Ask::new("POST", "/admin/api_keys").json(body);
        let reply = self.send(maker, &ask, &sees);
        if by.role < Role::Admin {
            return self.expect_refusal(&reply, 403, "insufficient_role");
        }
        if !is_within {
            return self.expect_refusal(&reply, 403, "insufficient_scope");
        }
        let made = reply.json();
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let (home, mark) = (self.codes.home(), String::new());
        let scope = Some(vec![(tenant, (!is_whole).then(|| vec!["east"]))]);
        let (id, secret, role) = (text("key_id"), text("api_key"), Role::Read);
        self.model.keys.push(crate::model::Key { id, secret, role, scope, home, mark });
        let lent = self.model.keys.len() - 1;
        let path = "/list/sources";
        for sub_tenant in ["default", "east"] {
            self.settle(tenant, sub_tenant);
            let (role, sub) = (Role::Read, Some(sub_tenant));
            let need = Need { role, tenant, sub_tenant: sub, mode: None, may_create: false };
            let sees = self.sees(tenant, sub_tenant);
            self.ask(lent, need, &Ask::new("GET", path).of(&name, sub_tenant), &sees);
        }
        let stranger = self.seeded.below(self.model.keys.len());
        if stranger != lent && !self.model.keys[stranger].sees(&self.model.keys[lent]) {
            self.revoke(stranger, lent);
        }
        self.revoke(maker, lent);
    }
}
