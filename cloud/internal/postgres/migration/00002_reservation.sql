-- +goose Up

-- Holds, reservations waiting for money, paid ones, those of administrators and of partner channels
-- are one table under one constraint: no two live rows of a room may occupy the same time.
-- occupied is [start, real end + margin); see booking.Interval.Occupied.
CREATE TABLE reservation (
    id           bigint GENERATED ALWAYS AS IDENTITY (START WITH 1001) PRIMARY KEY,
    branch_id    integer     NOT NULL REFERENCES branch,
    room_id      integer     NOT NULL REFERENCES room,
    state        text        NOT NULL CHECK (state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE',
                                 'CANCELING', 'CANCELED', 'EXPIRED', 'RELEASED', 'CONFLICT')),
    source       text        NOT NULL CHECK (source IN ('CUSTOMER', 'ADMIN', 'PARTNER')),
    start_at     timestamptz NOT NULL,
    end_at       timestamptz NOT NULL,
    occupied     tstzrange   NOT NULL,
    hold_token   bytea UNIQUE,              -- SHA-256 of the hold cookie
    expires_at   timestamptz,               -- HOLD: end of the hold; WAITING_FOR_DEPOSIT: deposit deadline
    name         text,
    mobile       text,                      -- as typed
    email        text,                      -- as typed
    mobile_key   text,                      -- booking.NormalizePhone, for comparison
    email_key    text,                      -- booking.NormalizeEmail
    language     text        NOT NULL DEFAULT 'ko' CHECK (language IN ('ko', 'en')),
    reason       text,                      -- an administrator's note
    created_by   text,                      -- administrator's login id, partner channel's name
    order_id     text UNIQUE,
    amount       integer CHECK (amount >= 0),
    method       text,                      -- 카드, 간편결제, 가상계좌, 휴대폰, 관리자; NULL before a payment
    doorlock_key uuid UNIQUE,               -- present exactly while doors may be opened with it
    paid_at      timestamptz,
    canceled_at  timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    version      integer     NOT NULL DEFAULT 1,
    CHECK (start_at < end_at AND end_at <= start_at + interval '5 hours'),
    CHECK (lower(occupied) = start_at AND upper(occupied) = end_at + interval '10 minutes'),
    CHECK (state <> 'HOLD' OR expires_at IS NOT NULL),
    CHECK (doorlock_key IS NULL OR state = 'DONE'),
    CONSTRAINT reservation_no_overlap EXCLUDE USING gist (room_id WITH =, occupied WITH &&)
        WHERE (state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING'))
) WITH (fillfactor = 80);

CREATE INDEX reservation_by_time ON reservation (branch_id, start_at)
    INCLUDE (id, room_id, state, source, end_at, expires_at)
    WHERE state IN ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING');
CREATE INDEX reservation_by_mobile ON reservation (mobile_key, id) WHERE method IS NOT NULL;
CREATE INDEX reservation_by_email ON reservation (email_key, id) WHERE method IS NOT NULL;
CREATE INDEX reservation_unsettled ON reservation (updated_at)
    WHERE state IN ('CONFIRMING', 'WAITING_FOR_DEPOSIT', 'CANCELING');
CREATE INDEX reservation_expiring ON reservation (expires_at) WHERE state = 'HOLD';

-- +goose StatementBegin
CREATE FUNCTION reservation_touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservation_touched BEFORE UPDATE ON reservation FOR EACH ROW EXECUTE FUNCTION reservation_touched();

-- The provider's side of a reservation: one row from the first confirm attempt or the issue of a virtual account.
CREATE TABLE payment (
    reservation_id      bigint      PRIMARY KEY REFERENCES reservation,
    key_set             text        NOT NULL CHECK (key_set IN ('widget', 'api')),
    payment_key         text UNIQUE,
    confirm_key         text        NOT NULL,   -- Idempotency-Key of the attempt under way or done
    attempt             integer     NOT NULL DEFAULT 1,
    attempted_at        timestamptz NOT NULL DEFAULT now(),
    checks              integer     NOT NULL DEFAULT 0,         -- times the provider was asked in vain
    check_at            timestamptz NOT NULL DEFAULT now(),     -- when to ask it next
    provider_status     text,
    total_amount        integer,
    balance_amount      integer,
    approved_at         timestamptz,
    secret              bytea,                  -- of the deposit callback, sealed
    account_bank        text,
    account_number      text,
    account_holder      text,
    account_due_at      timestamptz,            -- the earlier of the provider's and our own deadline
    deposited_at        timestamptz,
    receipt_url         text,
    updated_at          timestamptz NOT NULL DEFAULT now()
);

-- One row per intent to give money back (or to close an account that never got any).
CREATE TABLE refund (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reservation_id  bigint      NOT NULL REFERENCES reservation,
    state           text        NOT NULL CHECK (state IN ('REQUESTED', 'PENDING', 'COMPLETED', 'FAILED', 'REFUSED')),
    reason          text        NOT NULL,
    amount          integer     NOT NULL,
    requested_by    text        NOT NULL,       -- customer, admin:<id>, system:<why>
    account         bytea,                      -- bank, number and holder, sealed
    revoked_key     uuid,                       -- the key that died with the request, restored if the provider refuses
    idempotency_key text        NOT NULL,
    attempt         integer     NOT NULL DEFAULT 1,
    next_at         timestamptz NOT NULL DEFAULT now(),
    error_code      text,
    error_message   text,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX refund_one_open ON refund (reservation_id) WHERE state NOT IN ('COMPLETED', 'REFUSED');
CREATE INDEX refund_due ON refund (next_at) WHERE state IN ('REQUESTED', 'PENDING', 'FAILED');

-- Money's append-only ledger: every attempt, answer and transition. Balances are derived from it.
CREATE TABLE ledger (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    reservation_id bigint      NOT NULL REFERENCES reservation,
    order_id       text,
    kind           text        NOT NULL,        -- confirm.sent, confirm.done, cancel.sent, deposit, …
    amount         integer,
    code           text,                        -- the provider's code, verbatim
    detail         jsonb
);
CREATE INDEX ledger_by_reservation ON ledger (reservation_id, id);

-- The provider's callbacks: stored first, answered, then applied from what the provider says when asked.
CREATE TABLE webhook_event (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transmission_id text UNIQUE,
    order_id        text        NOT NULL,
    status          text        NOT NULL,
    received_at     timestamptz NOT NULL DEFAULT now(),
    applied_at      timestamptz
);
CREATE INDEX webhook_unapplied ON webhook_event (received_at) WHERE applied_at IS NULL;

-- Differences that reconciliation found between the provider's books and ours.
CREATE TABLE reconciliation_difference (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    found_at    timestamptz NOT NULL DEFAULT now(),
    order_id    text        NOT NULL,
    kind        text        NOT NULL,
    detail      text        NOT NULL,
    resolved_at timestamptz,
    resolution  text,
    UNIQUE (order_id, kind)
);

-- Every change of room or time of a reservation.
CREATE TABLE reservation_move (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reservation_id bigint      NOT NULL REFERENCES reservation,
    at             timestamptz NOT NULL DEFAULT now(),
    moved_by       text        NOT NULL,
    reason         text,
    from_room      integer     NOT NULL,
    from_start     timestamptz NOT NULL,
    from_end       timestamptz NOT NULL,
    to_room        integer     NOT NULL,
    to_start       timestamptz NOT NULL,
    to_end         timestamptz NOT NULL
);
CREATE INDEX reservation_move_by_reservation ON reservation_move (reservation_id, id);
