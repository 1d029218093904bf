module github.com/yeolda/yeolda/agent

go 1.26.0

require github.com/yeolda/yeolda/protocol v0.0.0

require (
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/eclipse/paho.golang v0.23.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/mochi-mqtt/server/v2 v2.7.9 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/rs/xid v1.4.0 // indirect
	github.com/warthog618/go-gpiocdev v0.9.1 // indirect
	github.com/warthog618/go-gpiosim v0.1.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.29.0 // indirect
	periph.io/x/conn/v3 v3.7.2 // indirect
	periph.io/x/devices/v3 v3.7.4 // indirect
	periph.io/x/host/v3 v3.8.5 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/yeolda/yeolda/protocol => ../protocol
