-- +goose Up

-- Persons who were erased after the backup that was restored, by their pseudonyms in the audit log. They are erased again.
CREATE TABLE erasure_pending (
    person text PRIMARY KEY
);
