-- +goose Up

-- Up to which time the rows of a source are linked into the audit log (postgres/auditlink.go).
CREATE TABLE audit_link (
    source text        PRIMARY KEY,
    until  timestamptz NOT NULL
);

-- When an entry was stored, by the database's clock. An earlier release does not write it.
ALTER TABLE pass_entry ADD COLUMN stored_at timestamptz NOT NULL DEFAULT now();
