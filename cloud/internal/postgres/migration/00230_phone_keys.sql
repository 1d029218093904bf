-- +goose Up

-- Keys of phone numbers that were written with the country code but without +, or without the leading zero, as booking.NormalizePhone
-- writes them now. Without this a block of such a guest would end with the upgrade. Such numbers are rare.
UPDATE guest_note SET mobile_key = regexp_replace(mobile_key, '^00820*|^820*(?=[1-9][0-9]{7,10}$)|^(?=10[0-9]{8}$)', '0')
WHERE mobile_key ~ '^0082|^820*[1-9][0-9]{7,10}$|^10[0-9]{8}$';

INSERT INTO guest_block (mobile_key, reason, created_by, created_at)
SELECT regexp_replace(mobile_key, '^00820*|^820*(?=[1-9][0-9]{7,10}$)|^(?=10[0-9]{8}$)', '0'), reason, created_by, created_at FROM guest_block
WHERE mobile_key ~ '^0082|^820*[1-9][0-9]{7,10}$|^10[0-9]{8}$'
ON CONFLICT DO NOTHING;

DELETE FROM guest_block WHERE mobile_key ~ '^0082|^820*[1-9][0-9]{7,10}$|^10[0-9]{8}$';

UPDATE compensation SET mobile_key = regexp_replace(mobile_key, '^00820*|^820*(?=[1-9][0-9]{7,10}$)|^(?=10[0-9]{8}$)', '0')
WHERE mobile_key ~ '^0082|^820*[1-9][0-9]{7,10}$|^10[0-9]{8}$';

UPDATE reservation SET mobile_key = regexp_replace(mobile_key, '^00820*|^820*(?=[1-9][0-9]{7,10}$)|^(?=10[0-9]{8}$)', '0')
WHERE mobile_key ~ '^0082|^820*[1-9][0-9]{7,10}$|^10[0-9]{8}$';
