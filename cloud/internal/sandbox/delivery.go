package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// callbackTimeout is how long the provider waits for the shop's response (docs/specification.md, Payment provider 6).
const callbackTimeout = 10 * time.Second

// The kinds of outgoing messages.
const (
	depositCallbackKind = "deposit-callback"
	channelEventKind    = "channel-event"
)

// outgoing is a message to the service that is retried until the service accepts it.
type outgoing struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"`
	About   string          `json:"about"` // order or booking id
	URL     string          `json:"url"`
	Body    json.RawMessage `json:"body"`
	Created time.Time       `json:"created"`
	Attempt int             `json:"attempt"` // attempts made
}

// Reply is the service's response to a message.
type Reply struct {
	Status int // 0 if there was no response
	Body   []byte
}

// Delivery is the delivery of a message to the service.
type Delivery struct {
	first chan struct{} // closed after the first attempt
	reply Reply         // of the first attempt, valid once first is closed
}

// First waits for the outcome of the first delivery attempt. Retries continue in the background.
func (d *Delivery) First(ctx context.Context) (Reply, error) {
	select {
	case <-d.first:
		return d.reply, nil
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

// undelivered is a delivery without a configured recipient.
func undelivered() *Delivery {
	d := &Delivery{first: make(chan struct{})}
	close(d.first)
	return d
}

// deliver sends m until it is accepted or the retries are used up. The caller holds s.mu.
func (s *Sandbox) deliver(m *outgoing) *Delivery {
	if s.ctx.Err() != nil {
		return undelivered()
	}
	m.ID, m.Created = randomHex(16), s.now()
	s.state.Outgoing = append(s.state.Outgoing, m)
	s.state.unsaved.Outgoing = append(s.state.unsaved.Outgoing, *m)
	return s.startDelivery(m)
}

func (s *Sandbox) startDelivery(m *outgoing) *Delivery {
	d := &Delivery{first: make(chan struct{})}
	s.wg.Go(func() { s.runDelivery(m, d) })
	return d
}

// resumeDeliveries continues deliveries that an earlier run did not finish.
func (s *Sandbox) resumeDeliveries() {
	for _, m := range s.state.Outgoing {
		s.startDelivery(m)
	}
}

func (s *Sandbox) runDelivery(m *outgoing, d *Delivery) {
	for attempt := 0; ; attempt++ {
		reply, err := s.attempt(m)
		if m.Kind == channelEventKind && taken(m.Kind, reply.Status) {
			s.decided(m.About, reply)
		}
		if attempt == 0 {
			d.reply = reply
			close(d.first)
		}
		if s.ctx.Err() != nil {
			return // remains in the state for the next run
		}
		done := err == nil && taken(m.Kind, reply.Status)
		s.log.Info("sandbox: delivered", "kind", m.Kind, "about", m.About, "attempt", m.Attempt+1,
			"status", reply.Status, "taken", done, "error", err)
		if done || attempt == len(s.opts.CallbackRetries) {
			break
		}
		s.mu.Lock()
		m.Attempt++
		s.state.unsaved.Outgoing = append(s.state.unsaved.Outgoing, *m)
		s.keep()
		s.mu.Unlock()
		s.wait(s.opts.CallbackRetries[attempt], nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Outgoing = slices.DeleteFunc(s.state.Outgoing, func(o *outgoing) bool { return o == m })
	s.state.unsaved.Outgoing = append(s.state.unsaved.Outgoing, outgoing{ID: m.ID})
	s.keep()
}

// taken reports whether a response ends the delivery: a deposit callback requires exactly 200 (docs/specification.md, Payment provider 6), a
// channel event accepts any decision, including a rejection (docs/specification.md, Partner channels 2).
func taken(kind string, status int) bool {
	if kind == channelEventKind {
		return status >= 200 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
	}
	return status == http.StatusOK
}

// errCallbackLost is the outcome of an attempt that a fault of TargetCallback suppresses.
var errCallbackLost = errors.New("deliver deposit-callback: lost, as a fault orders")

func (s *Sandbox) attempt(m *outgoing) (Reply, error) {
	if m.Kind == depositCallbackKind {
		if fault, timedOut := s.meet(TargetCallback, s.ctx); timedOut || fault.is(FaultError) {
			return Reply{}, errCallbackLost
		}
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Reply{}, fmt.Errorf("deliver %s: %w", m.Kind, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if m.Kind == depositCallbackKind {
		req.Header.Set("tosspayments-webhook-transmission-id", m.ID)
		req.Header.Set("tosspayments-webhook-transmission-time", m.Created.In(kst).Format(time.RFC3339))
		req.Header.Set("tosspayments-webhook-transmission-retried-count", strconv.Itoa(m.Attempt))
	} else {
		s.signPartner(req.Header, m.Body)
		req.Header.Set("Idempotency-Key", m.ID)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return Reply{}, fmt.Errorf("deliver %s: %w", m.Kind, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return Reply{}, fmt.Errorf("deliver %s: read the answer: %w", m.Kind, err)
	}
	return Reply{Status: res.StatusCode, Body: body}, nil
}

// mustJSON encodes a value of this package, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
