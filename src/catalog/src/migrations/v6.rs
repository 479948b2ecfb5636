//! Format 6: webhooks, their pending events, and look-up of jobs by id.
//!
//! A row of `deliveries` is one event for one webhook: it is inserted in the transaction that
//! causes the event, waits for delivery, and stays as an entry of the delivery log. `due_at` is
//! NULL while an earlier event of the same source is pending, and once the delivery has ended.

pub(super) const SQL: &str = "
CREATE INDEX jobs_by_id ON jobs (job_id);

CREATE TABLE webhooks (
    id            TEXT    NOT NULL PRIMARY KEY,
    url           TEXT    NOT NULL,
    description   TEXT    NOT NULL,
    secret        BLOB    NOT NULL CHECK (length(secret) = 32),
    kinds         TEXT    NOT NULL,
    all_tenants   INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    failing_since INTEGER,
    failures      INTEGER NOT NULL DEFAULT 0,
    not_before    INTEGER NOT NULL DEFAULT 0,
    pending       INTEGER NOT NULL DEFAULT 0,
    dropped       INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_for_all ON webhooks (id) WHERE all_tenants = 1;
CREATE TABLE webhook_scopes (
    webhook     TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    tenant      TEXT NOT NULL,
    sub_tenants TEXT,
    PRIMARY KEY (webhook, tenant)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_scopes_by_tenant ON webhook_scopes (tenant);

CREATE TABLE deliveries (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook      TEXT    NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    event        TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    collection   BLOB    NOT NULL,
    sub_tenant   TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    due_at       INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0,
    attempted_at INTEGER,
    status       INTEGER,
    problem      TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX deliveries_due ON deliveries (webhook, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_ended ON deliveries (webhook, id) WHERE state <> 'pending';
CREATE INDEX deliveries_of_webhook ON deliveries (webhook, id);
CREATE INDEX deliveries_by_source
    ON deliveries (collection, sub_tenant, source, webhook, state, id);

CREATE TRIGGER deliveries_count_in AFTER INSERT ON deliveries WHEN NEW.state = 'pending' BEGIN
    UPDATE webhooks SET pending = pending + 1 WHERE id = NEW.webhook;
END;
CREATE TRIGGER deliveries_count_ended AFTER UPDATE OF state ON deliveries
    WHEN OLD.state = 'pending' AND NEW.state <> 'pending'
BEGIN
    UPDATE webhooks SET pending = pending - 1 WHERE id = NEW.webhook;
END;
CREATE TRIGGER deliveries_count_out AFTER DELETE ON deliveries WHEN OLD.state = 'pending' BEGIN
    UPDATE webhooks SET pending = pending - 1 WHERE id = OLD.webhook;
END;
";
