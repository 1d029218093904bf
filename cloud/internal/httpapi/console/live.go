package console

import (
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/live"
)

// The connection of a console. Session and rights are looked at again once in a while: who is logged out or loses a
// branch hears no more of it.
const (
	livePing     = 20 * time.Second
	livePatience = 45 * time.Second // without a pong
	liveWrite    = 10 * time.Second
)

var liveUpgrader = websocket.Upgrader{HandshakeTimeout: liveWrite} // its origin check is the same-origin one

// liveEvents is GET /v2/admin/live?branch=&date=, a WebSocket: {"events": [{kind, target}]} whenever something changes.
func (c *Console) LiveEvents(w http.ResponseWriter, r *http.Request) error {
	code, err := wire.Query(r, "branch")
	if err != nil {
		return err
	}
	if err := wire.Scope(r, code); err != nil {
		return err
	}
	branch, err := c.Backoffice.Branch(r.Context(), code)
	if err != nil {
		return err
	}
	day, err := dayOf(r, branch.Zone)
	if err != nil {
		return err
	}
	if !websocket.IsWebSocketUpgrade(r) {
		return &wire.FieldError{Problem: "웹소켓 연결이 필요합니다."}
	}
	conn, err := liveUpgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // answered by the upgrader
	}
	defer func() { _ = conn.Close() }()     // whoever watched is gone
	events, stop := c.Live.Watch(code, day) //nolint:contextcheck // stop ends it
	defer stop()
	gone := make(chan struct{})
	go listen(conn, gone)
	ping := time.NewTicker(livePing)
	defer ping.Stop()
	for {
		select {
		case <-gone:
			return nil
		case list, ok := <-events:
			if !ok {
				farewell(conn, websocket.CloseTryAgainLater)
				return nil
			}
			_ = conn.SetWriteDeadline(time.Now().Add(liveWrite))
			if conn.WriteJSON(map[string][]live.Event{"events": list}) != nil {
				return nil
			}
		case <-ping.C:
			if p, err := c.Sessions.Identify(r); err != nil || !p.Reaches(code) {
				farewell(conn, websocket.ClosePolicyViolation)
				return nil
			}
			if conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(liveWrite)) != nil {
				return nil
			}
		}
	}
}

// listen notices that the other side is gone. It has nothing to say.
func listen(conn *websocket.Conn, gone chan<- struct{}) {
	defer close(gone)
	conn.SetReadLimit(512)
	_ = conn.SetReadDeadline(time.Now().Add(livePatience))
	conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(livePatience)) })
	for {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

func farewell(conn *websocket.Conn, code int) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}
