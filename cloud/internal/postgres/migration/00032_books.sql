-- +goose Up

-- Every movement of money, from the provider's own statements: a capture, each cancellation, a deposit that the bank took
-- back, and what an administrator returned outside the provider. Accounts that were never paid into have no entry.
CREATE TABLE money_entry (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source         text        NOT NULL UNIQUE,     -- of the provider's transaction: the same movement is booked once
    reservation_id bigint      NOT NULL REFERENCES reservation,
    branch_id      integer     NOT NULL REFERENCES branch,
    order_id       text        NOT NULL,
    kind           text        NOT NULL CHECK (kind IN ('paid', 'refunded', 'reversed', 'outside')),
    won            integer     NOT NULL,            -- what came in; negative: what went out
    at             timestamptz NOT NULL,            -- by the provider
    booked_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX money_entry_by_time ON money_entry (branch_id, at);
CREATE INDEX money_entry_by_reservation ON money_entry (reservation_id);

CREATE TRIGGER money_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON money_entry EXECUTE FUNCTION append_only();

-- One row per comparison with the provider's books. completed_at is set if every order could be compared.
CREATE TABLE reconciliation_run (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text        NOT NULL CHECK (kind IN ('light', 'full')),
    began_at     timestamptz NOT NULL,
    completed_at timestamptz,
    compared     integer     NOT NULL DEFAULT 0,
    failed       text[]      NOT NULL DEFAULT '{}'   -- orders that could not be compared
);
CREATE INDEX reconciliation_run_latest ON reconciliation_run (kind, began_at);
