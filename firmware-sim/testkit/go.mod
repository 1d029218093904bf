module github.com/yeolda/yeolda/firmware-sim/testkit

go 1.26.0

require (
	github.com/mochi-mqtt/server/v2 v2.7.9
	go.uber.org/goleak v1.3.0
)

require (
	github.com/gorilla/websocket v1.5.0 // indirect
	github.com/rs/xid v1.4.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
)
