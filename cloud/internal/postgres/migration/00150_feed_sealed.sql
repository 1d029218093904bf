-- +goose Up

-- The address of a partner's calendar is a secret, because it gives access to the partner's bookings. It is stored sealed.
-- Programs of the last release read and write feed_url in plain text. They may run beside this one during an upgrade and
-- after a roll-back, so the plain text stays for a day; then partner.Service.SealFeeds empties it. The next release drops
-- feed_url and feed_text_until.
ALTER TABLE channel_listing
    ADD COLUMN feed_sealed     bytea,
    ADD COLUMN feed_text_until timestamptz NOT NULL DEFAULT now() + interval '1 day';
