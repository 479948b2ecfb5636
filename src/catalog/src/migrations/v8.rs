//! Format 8: sums of the waiting jobs and the sessions of each tenant, and of the bytes of each
//! sub-tenant, kept by triggers.
//!
//! They were sums over as many rows as a tenant has sub-tenants or sources. Sessions had no limit.

pub(super) const SQL: &str = "
CREATE TABLE queue_use (
    collection BLOB    NOT NULL PRIMARY KEY,
    jobs       INTEGER NOT NULL,
    bytes      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO queue_use SELECT collection, sum(jobs), sum(bytes) FROM job_counts
    WHERE status = 'queued' GROUP BY collection;

CREATE TRIGGER queue_use_in AFTER INSERT ON jobs WHEN NEW.status = 'queued' BEGIN
    INSERT INTO queue_use VALUES (NEW.collection, 1, NEW.size_bytes)
        ON CONFLICT DO UPDATE SET jobs = jobs + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER queue_use_out AFTER DELETE ON jobs WHEN OLD.status = 'queued' BEGIN
    UPDATE queue_use SET jobs = jobs - 1, bytes = bytes - OLD.size_bytes
        WHERE collection = OLD.collection;
    DELETE FROM queue_use WHERE collection = OLD.collection AND jobs = 0;
END;
CREATE TRIGGER queue_use_change AFTER UPDATE OF status, size_bytes ON jobs
    WHEN OLD.status = 'queued' OR NEW.status = 'queued'
BEGIN
    INSERT INTO queue_use VALUES (NEW.collection, 0, 0) ON CONFLICT DO NOTHING;
    UPDATE queue_use SET
        jobs = jobs + (NEW.status = 'queued') - (OLD.status = 'queued'),
        bytes = bytes + (NEW.status = 'queued') * NEW.size_bytes
            - (OLD.status = 'queued') * OLD.size_bytes
        WHERE collection = NEW.collection;
    DELETE FROM queue_use WHERE collection = NEW.collection AND jobs = 0;
END;

CREATE TABLE sub_tenant_use (
    collection BLOB    NOT NULL,
    sub_tenant TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    PRIMARY KEY (collection, sub_tenant)
) STRICT, WITHOUT ROWID;
INSERT INTO sub_tenant_use SELECT collection, sub_tenant, sum(bytes) FROM known_sources
    WHERE bytes > 0 GROUP BY collection, sub_tenant;

CREATE TRIGGER sub_tenant_use_in AFTER INSERT ON known_sources WHEN NEW.bytes > 0 BEGIN
    INSERT INTO sub_tenant_use VALUES (NEW.collection, NEW.sub_tenant, NEW.bytes)
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER sub_tenant_use_out AFTER DELETE ON known_sources WHEN OLD.bytes > 0 BEGIN
    UPDATE sub_tenant_use SET bytes = bytes - OLD.bytes
        WHERE collection = OLD.collection AND sub_tenant = OLD.sub_tenant;
    DELETE FROM sub_tenant_use
        WHERE collection = OLD.collection AND sub_tenant = OLD.sub_tenant AND bytes = 0;
END;
CREATE TRIGGER sub_tenant_use_change AFTER UPDATE OF bytes ON known_sources
    WHEN OLD.bytes IS NOT NEW.bytes
BEGIN
    INSERT INTO sub_tenant_use VALUES (NEW.collection, NEW.sub_tenant, 0) ON CONFLICT DO NOTHING;
    UPDATE sub_tenant_use SET bytes = bytes + coalesce(NEW.bytes, 0) - coalesce(OLD.bytes, 0)
        WHERE collection = NEW.collection AND sub_tenant = NEW.sub_tenant;
    DELETE FROM sub_tenant_use
        WHERE collection = NEW.collection AND sub_tenant = NEW.sub_tenant AND bytes = 0;
END;

ALTER TABLE sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET bytes = (SELECT coalesce(sum(octet_length(question) + octet_length(answer)), 0)
    FROM turns WHERE session = sessions.id);
CREATE INDEX sessions_of_tenant ON sessions (collection, last_at);
CREATE TABLE session_use (
    collection BLOB    NOT NULL PRIMARY KEY,
    sessions   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO session_use SELECT collection, count(*), sum(bytes) FROM sessions GROUP BY collection;

-- Earlier releases left batches of vectors counted whose upload was cut off: see known.rs.
UPDATE tenants SET sources_known = 3 WHERE sources_known = 1;

CREATE TRIGGER session_use_in AFTER INSERT ON sessions BEGIN
    INSERT INTO session_use VALUES (NEW.collection, 1, NEW.bytes)
        ON CONFLICT DO UPDATE SET sessions = sessions + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER session_use_out AFTER DELETE ON sessions BEGIN
    UPDATE session_use SET sessions = sessions - 1, bytes = bytes - OLD.bytes
        WHERE collection = OLD.collection;
    DELETE FROM session_use WHERE collection = OLD.collection AND sessions = 0;
END;
CREATE TRIGGER session_use_change AFTER UPDATE OF bytes ON sessions BEGIN
    UPDATE session_use SET bytes = bytes + NEW.bytes - OLD.bytes
        WHERE collection = NEW.collection;
END;
";
