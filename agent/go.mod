module github.com/yeolda/yeolda/agent

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/eclipse/paho.golang v0.23.0
	github.com/gorilla/websocket v1.5.3
	github.com/mochi-mqtt/server/v2 v2.7.9
	github.com/pelletier/go-toml/v2 v2.4.3
	github.com/warthog618/go-gpiocdev v0.9.1
	github.com/warthog618/go-gpiosim v0.1.1
	github.com/yeolda/yeolda/firmware-sim/testkit v0.0.0
	github.com/yeolda/yeolda/protocol v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.58.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.49.0
	golang.org/x/time v0.16.0
	periph.io/x/conn/v3 v3.7.2
	periph.io/x/devices/v3 v3.7.4
	periph.io/x/host/v3 v3.8.5
	pgregory.net/rapid v1.3.0
)

require (
	github.com/pkg/errors v0.9.1 // indirect
	github.com/rs/xid v1.4.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
)

replace github.com/yeolda/yeolda/protocol => ../protocol

replace github.com/yeolda/yeolda/firmware-sim/testkit => ../firmware-sim/testkit
