//! Format 4: limits of tenants, and their usage, maintained by triggers.
//!
//! `bytes` of a known source is the size of its original; NULL for a memory, which does not count.
//! Sources whose jobs have been purged get theirs from their collections, as in format 3.

pub(super) const SQL: &str = "
ALTER TABLE known_sources ADD COLUMN bytes INTEGER;
UPDATE known_sources SET bytes = (SELECT max(j.size_bytes) FROM jobs j
    WHERE j.source = known_sources.source AND j.collection = known_sources.collection
      AND j.sub_tenant = known_sources.sub_tenant);
UPDATE tenants SET sources_known = 0;

CREATE TABLE tenant_limits (
    collection BLOB    NOT NULL PRIMARY KEY REFERENCES tenants,
    sources    INTEGER,
    bytes      INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE tenant_use (
    collection BLOB    NOT NULL PRIMARY KEY,
    sources    INTEGER NOT NULL,
    bytes      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO tenant_use SELECT collection, count(bytes), coalesce(sum(bytes), 0)
    FROM known_sources GROUP BY collection;

CREATE TRIGGER known_count_in AFTER INSERT ON known_sources WHEN NEW.bytes IS NOT NULL BEGIN
    INSERT INTO tenant_use VALUES (NEW.collection, 1, NEW.bytes)
        ON CONFLICT DO UPDATE SET sources = sources + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER known_count_out AFTER DELETE ON known_sources WHEN OLD.bytes IS NOT NULL BEGIN
    UPDATE tenant_use SET sources = sources - 1, bytes = bytes - OLD.bytes
        WHERE collection = OLD.collection;
END;
CREATE TRIGGER known_count_size AFTER UPDATE OF bytes ON known_sources
    WHEN OLD.bytes IS NOT NEW.bytes
BEGIN
    INSERT INTO tenant_use VALUES (NEW.collection, 0, 0) ON CONFLICT DO NOTHING;
    UPDATE tenant_use SET
        sources = sources + (NEW.bytes IS NOT NULL) - (OLD.bytes IS NOT NULL),
        bytes = bytes + coalesce(NEW.bytes, 0) - coalesce(OLD.bytes, 0)
        WHERE collection = NEW.collection;
END;
";
