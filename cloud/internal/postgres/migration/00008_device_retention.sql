-- +goose Up

-- Rows of these tables come in the order of their time, so a few pages of index find the old ones.
CREATE INDEX sensor_reading_by_time ON sensor_reading USING brin (at);
CREATE INDEX door_event_by_time ON door_event USING brin (at);
CREATE INDEX door_request_by_time ON door_request USING brin (created_at);
