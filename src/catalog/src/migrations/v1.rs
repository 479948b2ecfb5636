//! Format 1: the tables drawn in `lib.rs`.

pub(super) const SQL: &str = "
CREATE TABLE tenants (
    collection   BLOB    NOT NULL PRIMARY KEY CHECK (length(collection) = 16),
    name         TEXT    NOT NULL,
    mode         TEXT    NOT NULL,
    schema       TEXT,
    dimension    INTEGER,
    created_at   INTEGER NOT NULL,
    deleting     INTEGER NOT NULL DEFAULT 0,
    head_version INTEGER,
    head_nonce   BLOB
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tenants_by_name ON tenants (name) WHERE deleting = 0;
CREATE INDEX tenants_doomed ON tenants (collection) WHERE deleting = 1;

CREATE TABLE sub_tenants (
    collection BLOB    NOT NULL REFERENCES tenants,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (collection, name)
) STRICT, WITHOUT ROWID;

-- The maps come last: they may be long, and a row is read only up to the column asked for.
CREATE TABLE jobs (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id        TEXT    NOT NULL,
    collection    BLOB    NOT NULL REFERENCES tenants,
    sub_tenant    TEXT    NOT NULL,
    source        TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,
    interruptions INTEGER NOT NULL DEFAULT 0,
    not_before    INTEGER NOT NULL DEFAULT 0,
    version       INTEGER NOT NULL,
    overwritten   INTEGER NOT NULL,
    size_bytes    INTEGER NOT NULL,
    content_hash  BLOB    NOT NULL,
    raw_key       TEXT    NOT NULL,
    filename      TEXT    NOT NULL,
    url           TEXT    NOT NULL,
    content_type  TEXT    NOT NULL,
    title         TEXT,
    uploaded_at   INTEGER NOT NULL,
    origin_at     INTEGER,
    updated_at    INTEGER NOT NULL,
    started_at    INTEGER,
    finished_at   INTEGER,
    purge_at      INTEGER,
    chunks        INTEGER,
    fault         TEXT,
    message       TEXT    NOT NULL DEFAULT '',
    revision      INTEGER NOT NULL DEFAULT 0,
    tenant_metadata   TEXT,
    document_metadata TEXT
) STRICT;
CREATE INDEX jobs_by_source ON jobs (source, collection, sub_tenant, seq);
CREATE INDEX jobs_by_status ON jobs (collection, status, seq, sub_tenant);
CREATE INDEX jobs_open ON jobs (status, seq) WHERE status <> 'success';
CREATE INDEX jobs_ready ON jobs (collection, seq) WHERE status = 'queued' AND not_before = 0;
CREATE INDEX jobs_delayed ON jobs (not_before) WHERE status = 'queued' AND not_before > 0;
CREATE INDEX jobs_running ON jobs (collection, sub_tenant, source)
    WHERE status = 'in_progress';
CREATE INDEX jobs_purgeable ON jobs (purge_at) WHERE purge_at IS NOT NULL;

-- Counts are kept by triggers, so that they are exact after any crash and never counted anew.
CREATE TABLE job_counts (
    collection BLOB    NOT NULL,
    status     TEXT    NOT NULL,
    sub_tenant TEXT    NOT NULL,
    jobs       INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    PRIMARY KEY (collection, status, sub_tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE queue_total (
    id    INTEGER PRIMARY KEY CHECK (id = 0),
    jobs  INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO queue_total VALUES (0, 0, 0);

CREATE TRIGGER jobs_count_in AFTER INSERT ON jobs BEGIN
    INSERT INTO job_counts VALUES (NEW.collection, NEW.status, NEW.sub_tenant, 1, NEW.size_bytes)
        ON CONFLICT DO UPDATE SET jobs = jobs + 1, bytes = bytes + excluded.bytes;
    UPDATE queue_total SET jobs = jobs + 1, bytes = bytes + NEW.size_bytes
        WHERE NEW.status = 'queued';
END;
CREATE TRIGGER jobs_count_out AFTER DELETE ON jobs BEGIN
    UPDATE job_counts SET jobs = jobs - 1, bytes = bytes - OLD.size_bytes
        WHERE collection = OLD.collection AND status = OLD.status
          AND sub_tenant = OLD.sub_tenant;
    DELETE FROM job_counts WHERE collection = OLD.collection AND status = OLD.status
          AND sub_tenant = OLD.sub_tenant AND jobs = 0;
    UPDATE queue_total SET jobs = jobs - 1, bytes = bytes - OLD.size_bytes
        WHERE OLD.status = 'queued';
END;
CREATE TRIGGER jobs_count_move AFTER UPDATE OF status ON jobs WHEN OLD.status <> NEW.status
BEGIN
    INSERT INTO job_counts VALUES (NEW.collection, NEW.status, NEW.sub_tenant, 1, NEW.size_bytes)
        ON CONFLICT DO UPDATE SET jobs = jobs + 1, bytes = bytes + excluded.bytes;
    UPDATE job_counts SET jobs = jobs - 1, bytes = bytes - OLD.size_bytes
        WHERE collection = OLD.collection AND status = OLD.status
          AND sub_tenant = OLD.sub_tenant;
    DELETE FROM job_counts WHERE collection = OLD.collection AND status = OLD.status
          AND sub_tenant = OLD.sub_tenant AND jobs = 0;
    UPDATE queue_total SET jobs = jobs - 1, bytes = bytes - OLD.size_bytes
        WHERE OLD.status = 'queued';
    UPDATE queue_total SET jobs = jobs + 1, bytes = bytes + NEW.size_bytes
        WHERE NEW.status = 'queued';
END;

CREATE TABLE api_keys (
    id          TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    role        TEXT    NOT NULL,
    all_tenants INTEGER NOT NULL,
    secret_hash BLOB    NOT NULL CHECK (length(secret_hash) = 32),
    expires_at  INTEGER,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE key_scopes (
    key_id      TEXT NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    tenant      TEXT NOT NULL,
    sub_tenants TEXT,
    PRIMARY KEY (key_id, tenant)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_scopes_by_tenant ON key_scopes (tenant);

CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY,
    collection BLOB    NOT NULL REFERENCES tenants,
    sub_tenant TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    last_at    INTEGER NOT NULL,
    UNIQUE (collection, sub_tenant, name)
) STRICT;
CREATE INDEX sessions_by_age ON sessions (last_at);
CREATE TABLE turns (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    session  INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    asked_at INTEGER NOT NULL,
    question TEXT    NOT NULL,
    answer   TEXT    NOT NULL
) STRICT;
CREATE INDEX turns_by_session ON turns (session, id);

CREATE TABLE idempotency (
    id           INTEGER PRIMARY KEY,
    key_id       TEXT    NOT NULL,
    path         TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    request_hash BLOB    NOT NULL,
    nonce        BLOB    NOT NULL,
    created_at   INTEGER NOT NULL,
    status       INTEGER,
    body         BLOB,
    UNIQUE (key_id, path, name)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
";
