//! Format 7: limits on vectors, requests per minute and workers; embedding models of tenants.
//!
//! `embedding_model` is the name of the model chosen for a tenant; NULL follows the server's model.

pub(super) const SQL: &str = "
ALTER TABLE tenants ADD COLUMN embedding_model TEXT;
ALTER TABLE tenant_limits ADD COLUMN vectors INTEGER;
ALTER TABLE tenant_limits ADD COLUMN requests_per_minute INTEGER;
ALTER TABLE tenant_limits ADD COLUMN ingest_workers INTEGER;
";
