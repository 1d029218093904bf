-- +goose Up

-- Notes from one shift to the next, by branch. They are deleted with the retention of messages.
CREATE TABLE handover (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    branch_id  integer     NOT NULL REFERENCES branch,
    text       text        NOT NULL,
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL,
    done_by    text,
    done_at    timestamptz,
    CHECK ((done_by IS NULL) = (done_at IS NULL))
);
CREATE INDEX handover_by_branch ON handover (branch_id, created_at);
