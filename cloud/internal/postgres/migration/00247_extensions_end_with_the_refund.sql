-- +goose Up

-- The extensions of a canceled stay end when its refund is made, not when it is requested: the provider may decline it, and then the
-- stay continues with its extensions. policy_at is when the guest asked, if the refund policy applies to the extensions, too.
-- extension_account is the sealed account for deposits of extensions, until the refund is closed, if the refund itself needs no account.
ALTER TABLE refund ADD COLUMN policy_at timestamptz;
ALTER TABLE refund ADD COLUMN extension_account bytea;
