-- +goose Up

-- How the operator looks to guests: at most one row.
CREATE TABLE company (
    single    boolean PRIMARY KEY DEFAULT true CHECK (single),
    profile   jsonb,           -- facts, names, message prefix and colour; null: as shipped
    logo      bytea CHECK (length(logo) <= 32768),
    logo_type text CHECK (logo_type IN ('image/png', 'image/jpeg')),
    CHECK ((logo IS NULL) = (logo_type IS NULL))
);

-- Versions of the terms and the privacy policy, in Markdown. Guests have agreed to them, so they never change.
CREATE TABLE legal_text (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    version    text        NOT NULL UNIQUE CHECK (length(version) <= 20),
    terms_ko   text        NOT NULL,
    terms_en   text        NOT NULL,
    privacy_ko text        NOT NULL,
    privacy_en text        NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text        NOT NULL
);

-- +goose StatementBegin
CREATE FUNCTION legal_text_unchanged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version of the legal texts never changes';
END $$;
-- +goose StatementEnd

CREATE TRIGGER legal_text_unchanged BEFORE UPDATE OR DELETE ON legal_text FOR EACH ROW EXECUTE FUNCTION legal_text_unchanged();
