-- +goose Up

-- How many canary writes each process of the service has committed. One that finds fewer than it has committed knows that its database was set back.
CREATE TABLE canary (
    process    bigint      PRIMARY KEY, -- random
    writes     bigint      NOT NULL,
    written_at timestamptz NOT NULL
);

-- skip_identifiers increases all identifiers. The role of the service, which may not set sequences, calls it when its database was set back.
-- +goose StatementBegin
CREATE FUNCTION skip_identifiers(jump bigint) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, start_value) + jump)
    FROM pg_sequences WHERE schemaname = 'public' AND data_type = 'bigint'::regtype AND sequencename NOT LIKE 'goose%'
$$;
-- +goose StatementEnd
