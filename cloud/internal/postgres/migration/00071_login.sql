-- +goose Up

-- The browser that asked for a login code, and the wrong attempts of any other: those do not void the code for the
-- browser that asked.
ALTER TABLE login_code
    ADD COLUMN browser_hash  bytea,
    ADD COLUMN foreign_tries integer NOT NULL DEFAULT 0;

-- Recovery codes replace the second factor once each.
CREATE TABLE administrator_recovery (
    administrator_id integer NOT NULL REFERENCES administrator ON DELETE CASCADE,
    code_hash        bytea   NOT NULL,
    PRIMARY KEY (administrator_id, code_hash)
);
