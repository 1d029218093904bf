package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// deliverInterval is the longest time between a change and the first attempt to deliver it, while the receiver answers.
	deliverInterval = 500 * time.Millisecond

	// lease bounds the time one process delivers to a receiver without looking whether it still may. Near its end the
	// process stops, so that two never deliver at the same time.
	lease       = time.Minute
	leaseMargin = deliveryTimeout + 5*time.Second

	// giveUpAfter is the time after the first attempt at which the last one is made.
	giveUpAfter = 24 * time.Hour

	// maxFailures is the number of successive failures after which the receiver counts as away: it is left alone for
	// awayDelay. An event that it refuses delays only those of its subject.
	maxFailures = 3
	awayDelay   = time.Minute

	deliverBatch = 100
	maxAnswer    = 64 << 10 // bytes of an answer that are read, so that the connection can be used again
	maxProblem   = 200      // characters of an error that are kept
)

// retryDelays are the times between the attempts of a delivery; the last one repeats.
var retryDelays = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// Run delivers until ctx is done, and returns when the deliveries in progress have ended.
func (s *Webhooks) Run(ctx context.Context) error {
	ticker := time.NewTicker(deliverInterval)
	defer ticker.Stop()
	defer s.serving.Wait()
	for {
		if err := s.start(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "no deliveries of webhooks were started; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// start serves each webhook that is due in a goroutine of its own, so that a slow receiver delays no other.
func (s *Webhooks) start(ctx context.Context) error {
	if err := s.DB.PlaceEvents(ctx, false); err != nil {
		return err
	}
	due, err := postgres.DueWebhooks(ctx, s.DB.Pool, s.DB.Now())
	if err != nil {
		return err
	}
	for _, id := range due {
		if !s.claim(id) {
			continue
		}
		s.serving.Go(func() {
			defer s.unclaim(id)
			if err := s.Serve(ctx, id); err != nil && ctx.Err() == nil {
				s.Log.WarnContext(ctx, "webhook was not served; trying again", "webhook", id, "error", err)
			}
		})
	}
	return nil
}

func (s *Webhooks) claim(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id] {
		return false
	}
	s.busy[id] = true
	return true
}

func (s *Webhooks) unclaim(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, id)
}

// Serve delivers to a webhook what is due, one event at a time in the order of the stream, except that the events of a
// subject wait for an earlier one that failed. While another process serves the webhook it does nothing.
func (s *Webhooks) Serve(ctx context.Context, id int64) error {
	now := s.DB.Now().UTC().Truncate(time.Microsecond)
	until := now.Add(lease)
	w, err := postgres.LeaseWebhook(ctx, s.DB.Pool, id, now, until)
	if errors.Is(err, ErrNoWebhook) {
		return nil
	}
	if err != nil {
		return err
	}
	retryAt, err := s.deliverAll(ctx, w, until)
	return errors.Join(err, postgres.ReleaseWebhook(context.WithoutCancel(ctx), s.DB.Pool, id, until, retryAt))
}

// deliverAll returns when nothing is due, at the end of its time, or when the receiver is away; then it returns the time of
// the next attempt.
func (s *Webhooks) deliverAll(ctx context.Context, w postgres.Webhook, leased time.Time) (retryAt time.Time, err error) {
	secret, err := s.Keys.Open(secretPurpose, w.Secret)
	if err != nil { // sealed with a key that this process lacks; another one may have it
		return s.DB.Now().Add(awayDelay), fmt.Errorf("secret of webhook %d: %w", w.ID, err)
	}
	signer, err := standardwebhooks.NewWebhook(string(secret))
	if err != nil {
		return time.Time{}, err
	}
	failures, until := 0, leased.Add(-leaseMargin)
	for ctx.Err() == nil && s.DB.Now().Before(until) {
		if err := s.DB.FillWebhook(ctx, w, bodyOf); err != nil {
			return time.Time{}, err
		}
		due, err := postgres.NextDeliveries(ctx, s.DB.Pool, w.ID, s.DB.Now(), deliverBatch)
		if err != nil || len(due) == 0 {
			return time.Time{}, err
		}
		for _, d := range due {
			if ctx.Err() != nil || !s.DB.Now().Before(until) {
				return time.Time{}, nil //nolint:nilerr // the service ends; the deliveries wait for its next start
			}
			// A slow receiver that was disabled or removed would receive events for as long as the lease lasts.
			if serves, err := postgres.ServesWebhook(ctx, s.DB.Pool, w.ID, leased); err != nil || !serves {
				return time.Time{}, err
			}
			status, err := s.attempt(ctx, w, signer, d)
			if errors.Is(err, errGivenUp) {
				return time.Time{}, nil
			}
			if err != nil {
				return time.Time{}, err
			}
			if !away(status) {
				failures = 0
			} else if failures++; failures >= maxFailures {
				now := s.DB.Now()
				return now.Add(awayDelay), postgres.NoteReceiverAway(ctx, s.DB.Pool, w.ID, now)
			}
		}
	}
	return time.Time{}, nil
}

// errGivenUp ends the deliveries to a receiver that was away for giveUpAfter.
var errGivenUp = errors.New("events: the webhook is disabled")

func bodyOf(e postgres.Event) (string, error) {
	body, err := json.Marshal(eventOf(e))
	return string(body), err
}

// away reports whether the status of a failed attempt, 0 without an answer, concerns the receiver and not the event.
func away(status int) bool {
	return status < 200 || status >= 500 || status/100 == 3 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// attempt delivers an event once and records the result.
func (s *Webhooks) attempt(ctx context.Context, w postgres.Webhook, signer *standardwebhooks.Webhook, d postgres.Delivery) (status int, err error) {
	status, problem := s.post(ctx, w.URL, signer, d)
	if ctx.Err() != nil {
		return 0, ctx.Err() // the service stops: the receiver is not to blame
	}
	now := s.DB.Now()
	if problem == nil {
		return status, postgres.NoteDelivered(ctx, s.DB.Pool, d, status, now)
	}
	first := now
	if d.FirstAt != nil {
		first = *d.FirstAt
	}
	last := first.Add(giveUpAfter)
	next := now.Add(retryDelays[min(d.Attempts, len(retryDelays)-1)])
	if next.After(last) {
		next = last
	}
	text := problem.Error()
	if err := postgres.NoteUndelivered(ctx, s.DB.Pool, d, status, shortened(text), now, next); err != nil {
		return status, err
	}
	if !now.Before(last) {
		s.Log.WarnContext(ctx, "webhook disabled: deliveries failed for a day", "webhook", w.ID)
		return status, errors.Join(errGivenUp, postgres.DisableWebhook(ctx, s.DB.Pool, w.ID, now))
	}
	return status, nil
}

// shortened returns the part of an error that is kept. A receiver can cause any error text, and the database stores no
// half of a character.
func shortened(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if runes := []rune(text); len(runes) > maxProblem {
		text = string(runes[:maxProblem])
	}
	return text
}

// post sends an event. The signature contains the real time, which receivers compare with theirs. The database's clock shows it, so a replica
// whose machine is some minutes off is not rejected by all receivers.
func (s *Webhooks) post(ctx context.Context, to string, signer *standardwebhooks.Webhook, d postgres.Delivery) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	id, at := strconv.FormatInt(d.Place, 10), time.Now()
	if s.Ahead != nil {
		at = at.Add(s.Ahead())
	}
	signature, err := signer.Sign(id, at, []byte(d.Body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Yeolda-Webhooks")
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	response, err := s.client.Do(request)
	if err != nil {
		return 0, errors.Unwrap(err) // without the address, which may contain a secret
	}
	defer func() { _ = response.Body.Close() }()                         // nothing depends on it
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // the answer has no meaning
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("status %d", response.StatusCode)
	}
	return response.StatusCode, nil
}
