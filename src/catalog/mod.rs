//! Tenants, keys, jobs and conversations in SQLite.
