//! Format 3: the scopes in which a source was accepted, whatever happened to its job.
//!
//! Memories, vector batches and sources whose jobs have been purged are not among the jobs.
//! Existing tenants have `sources_known = 0` until their sources have been added from their
//! collections.

pub(super) const SQL: &str = "
CREATE TABLE known_sources (
    source     TEXT    NOT NULL,
    collection BLOB    NOT NULL REFERENCES tenants,
    sub_tenant TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (source, collection, sub_tenant)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_sources_by_scope ON known_sources (collection, sub_tenant);
INSERT INTO known_sources SELECT source, collection, sub_tenant, max(seq) FROM jobs
    GROUP BY source, collection, sub_tenant;
ALTER TABLE tenants ADD COLUMN sources_known INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tenants_unknown ON tenants (collection) WHERE sources_known = 0;
";
