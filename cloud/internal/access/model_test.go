package access_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
	"github.com/yeolda/yeolda/protocol/model"
)

// TestModelIsTheRealThing applies the same random steps to protocol/model, which represents the cloud in the simulation of
// the door exchange (agent/internal/doorsim), and to this package with PostgreSQL. It compares every answer and every row.
// Branch gangnam has a standby agent, which may be activated; hongdae has one agent.
func TestModelIsTheRealThing(t *testing.T) {
	t.Parallel()
	h := &house{t: t, db: pgtest.New(t), grants: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	h.exec(`insert into branch (code, front_doors) values ('gangnam', '{front_1,front_2}'), ('hongdae', '{front_1}')`)
	h.exec(`insert into room (branch_id, no) select id, no from branch, generate_series(1, 2) no`)
	h.exec(`insert into agent_credential (username, branch_id, secret_hash, active) select 'agent-' || code, id, '', true from branch`)
	h.exec(`insert into agent_credential (username, branch_id, secret_hash) select 'agent-gangnam-spare', id, '' from branch where code = 'gangnam'`)
	rapid.Check(t, func(t *rapid.T) {
		b := newBoth(t, h)
		t.Repeat(map[string]func(*rapid.T){
			"press": b.press, "announced press": b.announced, "claim": b.claim, "claim at once": b.claimAtOnce, "report": b.report, "no claim": b.fail,
			"no report": b.abandon, "nothing heard": b.unheard, "overdue": b.overdue, "cancel": b.cancel, "activate": b.activate, "time passes": b.age, "": b.compare,
		})
	})
}

// both is the model and the implementation.
type both struct {
	h       *house
	service *access.Service
	answers *answers
	table   model.Table
	clock   time.Time     // of the implementation. It stands still during a step: a slow machine changes no outcome
	ahead   time.Duration // of the model's clock; see align
	guests  []string      // keys, including cancelled ones
	gone    map[string]bool
	nonces  map[string][]string // that have claimed a request
	active  string              // of gangnam
}

func newBoth(t *rapid.T, h *house) *both {
	h.exec(`delete from door_request`)
	h.exec(`delete from reservation`)
	activateInDatabase(h, main)
	b := &both{h: h, answers: &answers{}, active: main, clock: time.Now().Truncate(time.Microsecond), gone: map[string]bool{}, nonces: map[string][]string{}}
	b.table.Activate(protocol.Agent{Branch: "hongdae", Username: "agent-hongdae"})
	b.table.Activate(protocol.Agent{Branch: "gangnam", Username: main})
	b.table.Enroll("gangnam")
	for room := 1; room <= 2; room++ {
		b.guests = append(b.guests, h.reserve(room))
	}
	b.service = h.replica()
	b.service.Link, b.service.Now = b.answers, func() time.Time { return b.clock }
	// A stopped replica executes calls, but its own timers do not interfere.
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if err := b.service.Run(stopped); err != nil {
		t.Fatal(err)
	}
	b.service.AwaitPresses()
	return b
}

// answers is an access.Link that records the answers to claims.
type answers struct {
	mu   sync.Mutex
	sent []protocol.Message
}

func (a *answers) Online(branch string) []string {
	return []string{protocol.AgentID(branch), protocol.AgentID(branch) + "-spare"}
}

func (a *answers) Send(_ protocol.Peer, m protocol.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ask := m.(protocol.Ask)
	if deny, ok := m.(protocol.Deny); !ask && !(ok && deny.Reason == access.NotPressed) {
		a.sent = append(a.sent, m)
	}
	return nil
}

// take returns, by nonce, the granted doors. The list is empty if the claim was denied.
func (a *answers) take() map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := map[string][]string{}
	for _, m := range a.sent {
		switch m := m.(type) {
		case protocol.Grant:
			taken[m.Nonce] = m.Doors
		case protocol.Deny:
			taken[m.Nonce] = nil
		}
	}
	a.sent = nil
	return taken
}

// The agents of branch gangnam.
const main, spare = "agent-gangnam", "agent-gangnam-spare"

// someAgent draws an agent: usually one of gangnam, active or standby, or one that uses the topics of the branch.
func someAgent(t *rapid.T) protocol.Agent {
	return rapid.SampledFrom([]protocol.Agent{
		{Branch: "gangnam", Username: main}, {Branch: "gangnam", Username: main}, {Branch: "gangnam", Username: spare},
		{Branch: "gangnam"}, {Branch: "hongdae", Username: "agent-hongdae"}, {Branch: "hongdae"},
	}).Draw(t, "agent")
}

func activateInDatabase(h *house, username string) {
	h.exec(`update agent_credential set active = false where branch_id = (select branch_id from agent_credential where username = $1)`, username)
	h.exec(`update agent_credential set active = true where username = $1`, username)
}

func (b *both) activate(t *rapid.T) {
	username := rapid.SampledFrom([]string{main, spare}).Draw(t, "username")
	activateInDatabase(b.h, username)
	b.active = username
	b.table.Activate(protocol.Agent{Branch: "gangnam", Username: username})
}

func (b *both) now() time.Time { return b.clock.Add(b.ahead) }

func (b *both) press(t *rapid.T) {
	kind := rapid.SampledFrom([]string{access.Front, access.Room}).Draw(t, "kind")
	b.pressAs(t, kind, rapid.IntRange(0, len(b.guests)).Draw(t, "who"))
}

// pressAs makes a request as guest number who, or as staff if there is no such guest.
func (b *both) pressAs(t *rapid.T, kind string, who int) {
	r := model.Row{Branch: "gangnam", Device: kind, Doors: []string{"front_1", "front_2"}, State: model.Pending, Created: b.now()}
	var err error
	if who == len(b.guests) {
		if kind == access.Room {
			r.Device, r.Doors = "room_1", []string{"room_1"}
		}
		r.ID, err = b.service.RequestAs(t.Context(), access.Actor{Name: "admin:kim"}, r.Branch, kind, 1)
	} else {
		if kind == access.Room {
			r.Device = fmt.Sprintf("room_%d", who+1)
			r.Doors = []string{r.Device}
		}
		r.Key = b.guests[who]
		r.ID, err = b.service.Request(t.Context(), r.Branch, kind, r.Key)
		if b.gone[r.Key] {
			if !errors.Is(err, access.ErrInvalidKey) {
				t.Fatalf("a cancelled key: %v", err)
			}
			return
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if joined := b.inProgress(r); joined != nil {
		if r.ID != joined.ID {
			t.Fatalf("press made request %s, want it to join %s", r.ID, joined.ID)
		}
		return
	}
	if b.table.Row(r.ID) != nil {
		t.Fatalf("press joined request %s, which is not in progress", r.ID)
	}
	b.table.Insert(r)
}

// announced announces a press of a guest, claims it as some agent, and presses. To the model that is a press, and a claim at the same
// instant.
func (b *both) announced(t *rapid.T) {
	kind := rapid.SampledFrom([]string{access.Front, access.Room}).Draw(t, "kind")
	guest := rapid.IntRange(0, len(b.guests)-1).Draw(t, "guest")
	asked := protocol.Agent{Branch: "gangnam", Username: b.active}
	before := b.service.Awaited()
	if err := b.service.Announce(t.Context(), "gangnam", kind, b.guests[guest]); err != nil {
		t.Fatal(err)
	}
	var id string
	for announced := range b.service.Awaited() {
		if _, known := before[announced]; !known {
			id = announced.String()
		}
	}
	if id == "" {
		if !b.gone[b.guests[guest]] && len(before) == 0 {
			t.Fatal("the announcement is not awaited")
		}
		return
	}
	from, nonce := someAgent(t), protocol.NewNonce()
	if err := b.service.Claim(t.Context(), protocol.Peer{Agent: from}, protocol.Claim{RequestID: id, Nonce: nonce}); err != nil {
		t.Fatal(err)
	}
	if rapid.IntRange(0, 3).Draw(t, "takeover") == 0 {
		b.activate(t)
	}
	if answered := b.answers.take(); len(answered) > 0 {
		t.Fatalf("the claim was answered before the press: %v", answered)
	}
	made := len(b.table.Rows())
	b.pressAs(t, kind, guest)
	want := map[string][]string{}
	if rows := b.table.Rows(); len(rows) > made && rows[made].ID == id {
		b.nonces[id] = []string{nonce}
		if from != asked {
			t.Fatalf("the claim of %v was kept, asked was %v", from, asked)
		}
		if doors := b.grant(rows[made], from, nonce); doors != nil {
			want[nonce] = doors
		}
	}
	if got := b.answers.take(); !maps.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("announced press %s: granted %v, the model says %v", id, got, want)
	}
}

// inProgress returns the request that a further request with the same key joins.
func (b *both) inProgress(press model.Row) *model.Row {
	for _, r := range b.table.Rows() {
		if press.Key != "" && r.Key == press.Key && r.Device == press.Device && !r.State.Final() && b.now().Sub(r.Created) < model.DriveLimit {
			return r
		}
	}
	return nil
}

// some draws a request, one of the latest four. Without any request, it skips the step.
func (b *both) some(t *rapid.T) *model.Row {
	rows := b.table.Rows()
	if len(rows) == 0 {
		t.Skip("there is no request")
	}
	return rows[len(rows)-1-rapid.IntRange(0, min(3, len(rows)-1)).Draw(t, "request")]
}

func (b *both) nonce(t *rapid.T, r *model.Row) string {
	known := b.nonces[r.ID]
	if i := rapid.IntRange(0, len(known)).Draw(t, "nonce"); i < len(known) {
		return known[i]
	}
	nonce := protocol.NewNonce()
	b.nonces[r.ID] = append(known, nonce)
	return nonce
}

func branchOf(t *rapid.T) string {
	return rapid.SampledFrom([]string{"gangnam", "gangnam", "gangnam", "hongdae"}).Draw(t, "branch")
}

// grant returns the model's answer to a claim.
func (b *both) grant(r *model.Row, from protocol.Agent, nonce string) []string {
	return b.table.Grant(r.ID, from, nonce, !b.gone[r.Key], b.now())
}

func (b *both) claim(t *rapid.T) {
	r := b.some(t)
	b.claimAs(t, r, someAgent(t), b.nonce(t, r))
}

func (b *both) claimAs(t *rapid.T, r *model.Row, from protocol.Agent, nonce string) {
	want := map[string][]string{nonce: b.grant(r, from, nonce)}
	if err := b.service.Claim(t.Context(), protocol.Peer{Agent: from}, protocol.Claim{RequestID: r.ID, Nonce: nonce}); err != nil {
		t.Fatal(err)
	}
	if got := b.answers.take(); !maps.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("claim of %s: granted %v, the model says %v", r.ID, got, want)
	}
}

// claimAtOnce sends claims with two nonces concurrently. Either may be granted; the model follows the implementation's
// order.
func (b *both) claimAtOnce(t *rapid.T) {
	r := b.some(t)
	nonces := []string{b.nonce(t, r), protocol.NewNonce()}
	b.nonces[r.ID] = append(b.nonces[r.ID], nonces[1])
	from := protocol.Agent{Branch: r.Branch, Username: b.active}
	errs := make([]error, len(nonces))
	var wg sync.WaitGroup
	for i, nonce := range nonces {
		wg.Go(func() {
			errs[i] = b.service.Claim(t.Context(), protocol.Peer{Agent: from}, protocol.Claim{RequestID: r.ID, Nonce: nonce})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	got := b.answers.take()
	if got[nonces[1]] != nil {
		slices.Reverse(nonces)
	}
	want := map[string][]string{}
	for _, nonce := range nonces {
		want[nonce] = b.grant(r, from, nonce)
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("two claims of %s: granted %v, the model says %v", r.ID, got, want)
	}
}

func (b *both) report(t *rapid.T) {
	r := b.some(t)
	from := someAgent(t)
	nonce := rapid.SampledFrom([]string{r.Nonce, r.Nonce, r.Nonce, "", protocol.NewNonce()}).Draw(t, "nonce")
	device := rapid.SampledFrom([]string{"front_1", "front_2", "room_1", "room_2"}).Draw(t, "device")
	outcome := rapid.SampledFrom([]protocol.Outcome{protocol.Opened, protocol.Opened, protocol.Failed, protocol.Dropped, protocol.Unknown}).Draw(t, "outcome")
	b.table.Report(r.ID, from, nonce, device, outcome)
	if err := b.service.Result(t.Context(), protocol.Peer{Agent: from}, protocol.Result{RequestID: r.ID, Nonce: nonce, Device: device, Outcome: outcome}); err != nil {
		t.Fatal(err)
	}
}

// fail and abandon do the work of the timers of the replica that accepted the request.
func (b *both) fail(t *rapid.T) {
	r := b.some(t)
	branch := branchOf(t)
	got, err := postgres.FailDoor(t.Context(), b.h.db.Pool, uuid.MustParse(r.ID), branch, model.NoClaim, b.clock)
	if want := b.table.Fail(r.ID, branch, model.NoClaim); err != nil || got != want {
		t.Fatalf("failed %t %v, the model says %t", got, err, want)
	}
}

func (b *both) abandon(t *rapid.T) { b.abandonOne(t, b.some(t)) }

func (b *both) abandonOne(t *rapid.T, r *model.Row) {
	got, err := postgres.AbandonDoor(t.Context(), b.h.db.Pool, uuid.MustParse(r.ID), b.clock)
	if want := b.table.Abandon(r.ID); err != nil || string(got) != string(want) {
		t.Fatalf("abandoned as %s %v, the model says %s", got, err, want)
	}
}

// unheard makes a request that is granted and never reported. Its final state depends on that of the previous request.
func (b *both) unheard(t *rapid.T) {
	made := len(b.table.Rows())
	b.age(t) // otherwise the request might join
	b.pressAs(t, access.Room, 0)
	if rows := b.table.Rows(); len(rows) > made {
		r := rows[made]
		b.claimAs(t, r, protocol.Agent{Branch: r.Branch, Username: b.active}, protocol.NewNonce())
		b.abandonOne(t, r)
	}
}

// overdue runs the sweep. Requests that end in the same sweep are judged by the states before it: no request is swept twice,
// and PostgreSQL determines the order in which a statement sees its rows.
func (b *both) overdue(t *rapid.T) {
	const claimLimit, reportLimit = 2600 * time.Millisecond, 7 * time.Second
	var old []*model.Row
	for _, r := range b.table.Rows() {
		if r.State == model.Granted && b.now().Sub(r.Created) > reportLimit {
			old = append(old, r)
		}
	}
	if len(old) > 1 {
		t.Skip("two at once")
	}
	got, err := postgres.EndOverdueDoors(t.Context(), b.h.db.Pool, claimLimit, reportLimit, b.clock)
	if want := b.table.EndOverdue(claimLimit, reportLimit, b.now()); err != nil || len(got) != len(want) {
		t.Fatalf("ended %v %v, the model says %d", got, err, len(want))
	}
}

func (b *both) cancel(t *rapid.T) {
	key := rapid.SampledFrom(b.guests).Draw(t, "key")
	b.gone[key] = true
	b.h.exec(`update reservation set state = 'CANCELING', doorlock_key = null where doorlock_key = $1`, key)
}

func (b *both) age(t *rapid.T) {
	by := time.Duration(rapid.IntRange(1, 4).Draw(t, "seconds")) * time.Second
	b.ahead += by
	b.align(t)
}

// align gives the rows the ages that they have in the model. The database's clock decides about them, and on a slow machine a case takes
// longer than the limits. It is read once: rows whose ages differ by a millisecond would change their order.
func (b *both) align(t *rapid.T) {
	var (
		ids  []string
		ages []time.Duration
	)
	for _, r := range b.table.Rows() {
		ids, ages = append(ids, r.ID), append(ages, b.now().Sub(r.Created))
	}
	_, err := b.h.db.Pool.Exec(t.Context(), `
		update door_request d set created_at = statement_timestamp() - m.age
		from unnest($1::uuid[], $2::interval[]) as m (id, age) where d.id = m.id`, ids, ages)
	if err != nil {
		t.Fatal(err)
	}
}

// line holds the fields of a row that the model and the implementation share.
type line struct {
	State, Nonce, Detail string
	Granted              bool
	Outcomes             map[string]protocol.Outcome
}

func (b *both) compare(t *rapid.T) {
	b.clock = b.clock.Add(time.Millisecond) // no two requests are made at the same time
	b.align(t)
	want, got := map[string]string{}, map[string]string{}
	text := func(l line) string { text, _ := json.Marshal(l); return string(text) }
	for _, r := range b.table.Rows() {
		want[r.ID] = text(line{string(r.State), r.Nonce, r.Detail, !r.Granted.IsZero(), r.Outcomes})
	}
	rows, err := b.h.db.Pool.Query(t.Context(), `
		select id::text, state, coalesce(nonce, ''), coalesce(detail, ''), granted_at is not null, outcomes
		from door_request`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			id       string
			l        = line{Outcomes: map[string]protocol.Outcome{}}
			outcomes map[string]door.Outcome
		)
		if err := rows.Scan(&id, &l.State, &l.Nonce, &l.Detail, &l.Granted, &outcomes); err != nil {
			t.Fatal(err)
		}
		for device, o := range outcomes {
			l.Outcomes[device] = protocol.Outcome(o.Outcome)
		}
		got[id] = text(l)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("rows\n%v\nthe model says\n%v", got, want)
	}
}
