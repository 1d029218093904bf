-- +goose Up

-- Rooms offered on partner channels.
CREATE TABLE channel_listing (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel       text    NOT NULL,               -- ical, gateway, manual
    partner       text    NOT NULL,               -- name of the partner
    external_id   text    NOT NULL,
    room_id       integer NOT NULL REFERENCES room,
    feed_url      text    NOT NULL DEFAULT '',    -- iCalendar import
    feed_etag     text    NOT NULL DEFAULT '',
    feed_modified text    NOT NULL DEFAULT '',
    fetched_at    timestamptz,
    fetch_error   text    NOT NULL DEFAULT '',
    export_token  bytea UNIQUE,                   -- SHA-256 of the token in the export link
    enabled       boolean NOT NULL DEFAULT true,
    UNIQUE (partner, external_id)
);

CREATE TABLE partner_booking (
    partner        text        NOT NULL,
    external_id    text        NOT NULL,
    listing_id     integer     NOT NULL REFERENCES channel_listing,
    reservation_id bigint REFERENCES reservation,
    status         text        NOT NULL CHECK (status IN ('CONFIRMED', 'CONFLICT', 'CANCELLED')),
    seq            bigint      NOT NULL DEFAULT 0,
    start_at       timestamptz NOT NULL,
    end_at         timestamptz NOT NULL,
    missed         integer     NOT NULL DEFAULT 0,
    seen_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partner, external_id)
);

-- Blocks placed (or to be placed) at partner channels for our own reservations: the channel's outbox.
CREATE TABLE channel_block (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reservation_id bigint      NOT NULL REFERENCES reservation,
    listing_id     integer     NOT NULL REFERENCES channel_listing,
    state          text        NOT NULL CHECK (state IN ('WANTED', 'PLACED', 'UNWANTED', 'REMOVED')),
    start_at       timestamptz NOT NULL,
    end_at         timestamptz NOT NULL,
    external_ref   text,
    attempt        integer     NOT NULL DEFAULT 0,
    next_at        timestamptz NOT NULL DEFAULT now(),
    error          text,
    created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX channel_block_due ON channel_block (next_at) WHERE state IN ('WANTED', 'UNWANTED');
CREATE INDEX channel_block_by_reservation ON channel_block (reservation_id);
