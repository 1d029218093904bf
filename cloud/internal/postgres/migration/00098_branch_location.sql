-- +goose Up

-- Where a branch is, in degrees (WGS 84). NULL: unknown.
ALTER TABLE branch ADD COLUMN latitude double precision CHECK (latitude BETWEEN -90 AND 90);
ALTER TABLE branch ADD COLUMN longitude double precision CHECK (longitude BETWEEN -180 AND 180);
