-- +goose Up

-- When the headquarters retired a legal entity; null: it is in use. A retired entity is not compared with the provider's books.
ALTER TABLE legal_entity ADD COLUMN retired_at timestamptz;
