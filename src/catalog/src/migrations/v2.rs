//! Format 2: details of application records, and jobs whose original has to be fetched first.
//!
//! A title supplied separately from the metadata becomes part of the detail. Fetching an original
//! changes the size of a job, so the counters now follow size changes too.

pub(super) const SQL: &str = "
ALTER TABLE jobs ADD COLUMN fetch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN detail TEXT NOT NULL DEFAULT '';
UPDATE jobs SET detail = json_object('title', title) WHERE title <> '';
ALTER TABLE jobs DROP COLUMN title;
DROP INDEX jobs_ready;
CREATE INDEX jobs_ready ON jobs (fetch, collection, seq)
    WHERE status = 'queued' AND not_before = 0;

CREATE TRIGGER jobs_count_size AFTER UPDATE OF size_bytes ON jobs
    WHEN OLD.status = NEW.status AND OLD.size_bytes <> NEW.size_bytes
BEGIN
    UPDATE job_counts SET bytes = bytes + NEW.size_bytes - OLD.size_bytes
        WHERE collection = NEW.collection AND status = NEW.status
          AND sub_tenant = NEW.sub_tenant;
    UPDATE queue_total SET bytes = bytes + NEW.size_bytes - OLD.size_bytes
        WHERE NEW.status = 'queued';
END;
";
