package stage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"
)

const (
	callTimeout  = 20 * time.Second
	pollInterval = 100 * time.Millisecond
	pollTimeout  = 90 * time.Second // a broker notices a dead branch by its keep-alive
)

// person is a guest or an administrator with a browser of their own.
type person struct {
	http    http.Client
	service string
}

func (s *Stage) newPerson() *person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // never: no options
	}
	return &person{http.Client{Jar: jar, Timeout: callTimeout}, s.Service}
}

// refusal is an answer of the service other than 200.
type refusal struct {
	Status    int `json:"-"`
	ErrorType string
	Message   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("HTTP %d %s: %s", r.Status, r.ErrorType, r.Message)
}

// refusedWith reports whether an error is a refusal with a status.
func refusedWith(err error, status int) bool {
	refused := (*refusal)(nil)
	return errors.As(err, &refused) && refused.Status == status
}

// unlessRefused returns an error that is not a refusal.
func unlessRefused(err error) error {
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return nil
	}
	return err
}

// call sends a request to the service and decodes the data of the answer. It returns a *refusal.
func (p *person) call(ctx context.Context, method, path string, body, data any) error {
	envelope := struct{ Data any }{data}
	return p.ask(ctx, method, p.service+"/api"+path, body, &envelope)
}

// ask sends a request and decodes the answer. It returns a *refusal.
func (p *person) ask(ctx context.Context, method, address string, body, into any) error {
	answer, err := p.send(ctx, method, address, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		refused := refusal{Status: answer.StatusCode}
		_ = json.NewDecoder(answer.Body).Decode(&refused)
		return &refused
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

func (p *person) send(ctx context.Context, method, address string, body any) (*http.Response, error) {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, &sent)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := p.http.Do(request)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s %s: %w", method, request.URL.Host, failed.Err) // without the path, which may hold a key
	}
	return answer, err
}

// await polls for an effect for which there is no event.
func (t *telling) await(what string, ok func() (bool, error)) {
	t.do(func() error { return await(t.ctx, what, ok) })
}

func await(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, stop := context.WithTimeoutCause(ctx, pollTimeout, fmt.Errorf("%s: not within %v", what, pollTimeout))
	defer stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

// opening is the outcome of a press.
type opening struct {
	Request string
	Status  string // SUCCESS or FAILED
	Code    string // for the keypad, if the door did not open
}

// press presses a button of the key page ("front" or "room") and waits for the result.
func (t *telling) press(b *booking, door string) (o opening) {
	t.do(func() (err error) { o, err = b.press(t.ctx, door, b.Key); return err })
	return o
}

func (p *person) press(ctx context.Context, door, key string) (opening, error) {
	var accepted struct{ RequestID string }
	if err := p.call(ctx, http.MethodPost, "/door/v2/unlock", map[string]string{"branch": branch, "doorlockType": door, "key": key}, &accepted); err != nil {
		return opening{}, err
	}
	answer, err := p.send(ctx, http.MethodGet, p.service+"/api/door/v2/unlock/subscribe?requestId="+accepted.RequestID+"&key="+key, nil)
	if err != nil {
		return opening{}, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			var result struct{ Status, FailoverKey string }
			err := json.Unmarshal([]byte(data), &result)
			return opening{accepted.RequestID, result.Status, result.FailoverKey}, err
		}
	}
	return opening{}, fmt.Errorf("HTTP %d: no result of the press", answer.StatusCode)
}
