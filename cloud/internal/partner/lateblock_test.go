package partner_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// slowPartner is a proxy in front of the partner, which receives the first block only when the test releases it.
type slowPartner struct {
	address string // of the partner
	gaveUp  bool   // the proxy answers 504 meanwhile

	first                           sync.Once
	kept, release, created, removed chan struct{}
}

func newSlowPartner(gaveUp bool) *slowPartner {
	return &slowPartner{gaveUp: gaveUp, kept: make(chan struct{}), release: make(chan struct{}), created: make(chan struct{}), removed: make(chan struct{}, 10)}
}

func (p *slowPartner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	creates, first := bytes.Contains(body, []byte("block.created")), false
	if creates {
		p.first.Do(func() { first = true })
	}
	switch {
	case first && p.gaveUp:
		w.WriteHeader(http.StatusGatewayTimeout)
		close(p.kept)
		go func() {
			<-p.release
			p.forward(r.Header, body)
			close(p.created)
		}()
	case first:
		close(p.kept)
		<-p.release
		w.WriteHeader(p.forward(r.Header, body))
		close(p.created)
	default:
		w.WriteHeader(p.forward(r.Header, body))
		if !creates {
			p.removed <- struct{}{}
		}
	}
}

func (p *slowPartner) forward(header http.Header, body []byte) (status int) {
	r, err := http.NewRequest(http.MethodPost, p.address+"/partner/v1/blocks", bytes.NewReader(body))
	if err != nil {
		return http.StatusInternalServerError
	}
	r.Header = header.Clone()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return http.StatusBadGateway
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// A slow partner creates a block after the reservation was canceled and the removal of the block accepted: it is removed again.
func TestBlockThatIsCreatedAfterItsRemoval(t *testing.T) {
	t.Parallel()
	for name, gaveUp := range map[string]bool{
		"its gateway gave up before":     true,
		"the attempt outlived its lease": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := newSlowPartner(gaveUp)
			proxy := httptest.NewServer(slow)
			t.Cleanup(proxy.Close)
			s := open(t, func(set *config.Settings) {
				set.Partner = set.Effective().Partner
				slow.address, set.Partner.URL = set.Partner.URL, proxy.URL
			})
			admin := s.admin(t)
			bought, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard))
			if err != nil {
				t.Fatal(err)
			}
			<-slow.kept
			reply, err := admin.Do(s.ctx, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", s.id(t, bought.OrderID)), nil)
			must(t, reply, err)
			s.Clock.Advance(31 * time.Second) // the lease of the attempt
			<-slow.removed
			close(slow.release)
			<-slow.created
			for again := false; !again; {
				select {
				case <-slow.removed:
					again = true
				case <-time.After(10 * time.Millisecond): // the time of the next attempt depends on when the service has recorded this one
					s.Clock.Advance(time.Second)
				case <-s.ctx.Done():
					t.Fatalf("the block was not removed again: %v", s.Sandbox.Blocks())
				}
			}
			s.blocks(t)
		})
	}
}
