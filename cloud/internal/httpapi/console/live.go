package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/live"
)

// pingInterval is a variable for tests. At each ping the session is checked again, so that a console that logged out or lost
// a branch receives no more events of it. A token is checked all the time.
var pingInterval = 20 * time.Second

// Timing of a console's connection.
const (
	pongTimeout  = 45 * time.Second // without a pong, the connection is closed
	writeTimeout = 10 * time.Second
	watchTimeout = 5 * time.Second // the database has to answer a query
)

// noEvents is the message of a ping: browsers show none to scripts, which otherwise could not distinguish a quiet connection from one that
// the network has dropped silently.
var noEvents = map[string][]live.Event{"events": {}}

// liveUpgrader accepts the origin of the address that the client used, which is in the header Host, and the public one: a proxy may have
// replaced the header.
func (c *Console) liveUpgrader() *websocket.Upgrader {
	return &websocket.Upgrader{HandshakeTimeout: writeTimeout, CheckOrigin: func(r *http.Request) bool {
		origin := r.Header.Get("Origin")
		from, err := url.Parse(origin)
		return origin == "" || origin == c.PublicURL || err == nil && strings.EqualFold(from.Host, r.Host)
	}}
}

// LiveEvents serves GET /v2/admin/live?branch=&date=, a WebSocket that sends {"events": [{kind, target}]} after each change. Without
// a branch, it reports the branches whose agent or alerts have changed.
func (c *Console) LiveEvents(w http.ResponseWriter, r *http.Request) error {
	code := r.URL.Query().Get("branch")
	day, err := c.watchedDay(r, code)
	if err != nil {
		return err
	}
	if !websocket.IsWebSocketUpgrade(r) {
		return &wire.FieldError{Problem: "웹소켓 연결이 필요합니다."}
	}
	session, err := c.Sessions.ID(r)
	if err != nil {
		return err
	}
	release, err := c.sockets.add(session)
	if err != nil {
		return err
	}
	defer release()
	// Before the answer: what a client fetches once it is connected is not older than the first event.
	ctx, cancel := context.WithTimeout(r.Context(), watchTimeout)
	defer cancel()
	events, stop, err := c.Live.Watch(ctx, code, day)
	if err != nil {
		return err
	}
	defer stop()
	conn, err := c.liveUpgrader().Upgrade(w, r, nil)
	if err != nil {
		return nil // the upgrader has answered
	}
	defer func() { _ = conn.Close() }() // the client may have closed it already
	c.sendEvents(r, conn, code, events)
	return nil
}

// watchedDay returns the day of a branch whose events are requested; without a branch, none.
func (c *Console) watchedDay(r *http.Request, code string) (day booking.Interval, err error) {
	if code == "" {
		return day, nil
	}
	if err := wire.Scope(r, code); err != nil {
		return day, err
	}
	branch, err := c.Backoffice.Branch(r.Context(), code)
	if err != nil {
		return day, err
	}
	return dayOf(r, branch.Zone)
}

// sendEvents sends events until the connection, the session or the right to receive them ends.
func (c *Console) sendEvents(r *http.Request, conn *websocket.Conn, code string, events <-chan []live.Event) {
	bound, unbind := c.Sessions.Bound(r)
	defer unbind()
	viewer := wire.Principal(r)
	closed := make(chan struct{})
	go listen(conn, closed)
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		select {
		case <-closed:
			return
		case <-bound.Done():
			sendClose(conn, websocket.ClosePolicyViolation)
			return
		case list, ok := <-events:
			if !ok {
				sendClose(conn, websocket.CloseTryAgainLater)
				return
			}
			if list = within(viewer, code, list); len(list) == 0 {
				continue
			}
			_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if conn.WriteJSON(map[string][]live.Event{"events": list}) != nil {
				return
			}
		case <-ping.C:
			var err error
			if viewer, err = c.Sessions.Recheck(r); err != nil || !viewer.MayWatch() || code != "" && !viewer.Reaches(code) {
				sendClose(conn, websocket.ClosePolicyViolation)
				return
			}
			_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)) != nil || conn.WriteJSON(noEvents) != nil {
				return
			}
		}
	}
}

// within returns the events that an administrator may receive. Events of all branches name a branch.
func within(p account.Principal, code string, events []live.Event) []live.Event {
	if code != "" || p.Role == account.HQ {
		return events
	}
	return slices.DeleteFunc(slices.Clone(events), func(e live.Event) bool { return !p.Reaches(e.Target) })
}

// listen detects that the client has disconnected. Clients send no messages.
func listen(conn *websocket.Conn, closed chan<- struct{}) {
	defer close(closed)
	conn.SetReadLimit(512)
	_ = conn.SetReadDeadline(time.Now().Add(pongTimeout))
	conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(pongTimeout)) })
	for {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

func sendClose(conn *websocket.Conn, code int) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}
