-- +goose Up

-- What an hour of the unit costs in this room, in won, and the temperature at which an intent was judged.
ALTER TABLE climate_policy ADD COLUMN hourly_cost integer CHECK (hourly_cost BETWEEN 0 AND 100000);
ALTER TABLE climate_intent ADD COLUMN seen double precision;
