//! Format 5: uploaded files that are not sources, names of vector stores, file batches.
//!
//! A file counts in `tenant_use` like a source. The index of known sources includes `bytes`, so
//! that the usage of one sub-tenant is a sum over the index alone.

pub(super) const SQL: &str = "
CREATE TABLE files (
    collection   BLOB    NOT NULL REFERENCES tenants,
    id           TEXT    NOT NULL,
    sub_tenant   TEXT    NOT NULL,
    purpose      TEXT    NOT NULL,
    filename     TEXT    NOT NULL,
    content_type TEXT    NOT NULL,
    bytes        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    raw_key      TEXT    NOT NULL,
    PRIMARY KEY (collection, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER files_count_in AFTER INSERT ON files BEGIN
    INSERT INTO tenant_use VALUES (NEW.collection, 1, NEW.bytes)
        ON CONFLICT DO UPDATE SET sources = sources + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER files_count_out AFTER DELETE ON files BEGIN
    UPDATE tenant_use SET sources = sources - 1, bytes = bytes - OLD.bytes
        WHERE collection = OLD.collection;
END;

CREATE TABLE vector_stores (
    collection BLOB NOT NULL REFERENCES tenants,
    name       TEXT NOT NULL,
    title      TEXT NOT NULL,
    metadata   TEXT NOT NULL,
    PRIMARY KEY (collection, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE file_batches (
    collection  BLOB    NOT NULL REFERENCES tenants,
    sub_tenant  TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    is_canceled INTEGER NOT NULL DEFAULT 0,
    files       TEXT    NOT NULL,
    PRIMARY KEY (collection, sub_tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_batches_by_age ON file_batches (collection, id);

DROP INDEX known_sources_by_scope;
CREATE INDEX known_sources_by_scope ON known_sources (collection, sub_tenant, bytes);
";
