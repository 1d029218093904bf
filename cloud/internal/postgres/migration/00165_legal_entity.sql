-- +goose Up

-- The legal entities that sell beside that of the settings. Their payments are read and refunded with their own keys only, so
-- an entity is never deleted.
CREATE TABLE legal_entity (
    code       text        PRIMARY KEY CHECK (code ~ '^[a-z0-9][a-z0-9-]{0,29}$'),
    facts      jsonb       NOT NULL, -- as those of the company
    client_key text        NOT NULL,
    widget_key bytea       NOT NULL, -- secret keys, sealed
    api_key    bytea       NOT NULL,
    updated_at timestamptz NOT NULL
);

-- The entity that sells at a branch; null: that of the settings.
ALTER TABLE branch ADD COLUMN legal_entity text REFERENCES legal_entity;

-- The entity that is paid, fixed with the order; null: that of the settings.
ALTER TABLE reservation ADD COLUMN legal_entity text;

-- The key set under which the provider listed an order that is not ours.
ALTER TABLE reconciliation_difference ADD COLUMN key_set text;

-- A key set of another entity has its code, as in widget:seoul. A program of the last release refuses to use it.
ALTER TABLE payment DROP CONSTRAINT payment_key_set_check;
ALTER TABLE payment ADD CONSTRAINT payment_key_set_check CHECK (key_set ~ '^(widget|api)(:[a-z0-9][a-z0-9-]*)?$') NOT VALID;
