-- +goose Up

-- Brokers outside: the kind of the list of brokers (see 00211).
INSERT INTO mqtt_kind (name, action, own) VALUES ('brokers', 'subscribe', true) ON CONFLICT DO NOTHING;
