package console

import "time"

// SetPingInterval changes how often an open connection is checked.
func SetPingInterval(d time.Duration) { pingInterval = d }
