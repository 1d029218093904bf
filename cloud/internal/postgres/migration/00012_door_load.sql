-- +goose Up

-- A press writes its row and changes it twice. What that costs decides how many doors open in a second.

-- Open requests are those that have not ended: an index that does not name the state lets the grant change the row in
-- place (a heap-only tuple), if its page has room.
CREATE INDEX door_request_unfinished ON door_request (created_at) WHERE finished_at IS NULL;
DROP INDEX door_request_open;
ALTER TABLE door_request ADD CHECK ((finished_at IS NULL) = (state IN ('PENDING', 'GRANTED'))) NOT VALID;
ALTER TABLE door_request SET (fillfactor = 60);

-- These rows are written by statements that select the branch and the reservation they name, and neither is ever
-- deleted; checking that again locks a row of the reservation for each press, and of the branch for each event.
ALTER TABLE door_request DROP CONSTRAINT door_request_branch_id_fkey, DROP CONSTRAINT door_request_reservation_id_fkey;
ALTER TABLE door_event DROP CONSTRAINT door_event_branch_id_fkey;
