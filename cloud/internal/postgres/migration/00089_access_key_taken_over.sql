-- +goose Up

-- The keys of existing reservations: those that open doors, those that are blocked, and those that a refund in progress
-- may restore. The service seals them after its start (reserve.Service.SealKeys).
INSERT INTO access_key (reservation_id, hash, kind, created_by, created_at)
SELECT id, sha256(convert_to(key::text, 'UTF8')), 'owner', 'system', coalesce(paid_at, created_at)
FROM (
    SELECT r.id, r.paid_at, r.created_at, coalesce(r.doorlock_key, r.blocked_key, f.revoked_key) AS key
    FROM reservation r LEFT JOIN refund f
      ON f.reservation_id = r.id AND r.state = 'CANCELING' AND f.state NOT IN ('COMPLETED', 'REFUSED')
) keyed
WHERE key IS NOT NULL
ON CONFLICT DO NOTHING;

UPDATE reservation SET keys_blocked = true WHERE blocked_key IS NOT NULL AND NOT keys_blocked;
