package climate_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// simulation is a branch in simulated time: rooms with thermal mass, a unit and a sensor each. It is the link to its own
// agent. One step is a minute.
type simulation struct {
	t        *testing.T
	db       *postgres.DB
	services []*climate.Service // replicas
	random   *rand.Rand
	now      time.Time
	rooms    []*simRoom
	policies []postgres.ClimatePolicy
	byOption map[string]simCommand

	lost    float64 // share of frames that no unit hears
	ignores int     // each unit ignores every n-th command; 0: none
	dead    bool    // the transmitter reports an error
	offline bool    // the active agent is away

	mu   sync.Mutex // guards sent and the units while replicas send at the same time
	sent []string   // options, in the order of their commands
}

type simRoom struct {
	id               int32
	celsius, ambient float64
	on               bool
	target           float64
	window           bool
	frames           int
	stays            []*simStay
	onWithout        int // minutes in a row on without a stay
	onIdle           int // minutes in a row on without a stay now or soon
	wasOn            bool
	mate             *simRoom // has the same unit
}

type simStay struct {
	id         int64
	start, end time.Time
	canceled   bool
}

type simCommand struct {
	room *simRoom
	on   bool
	at   float64
}

const (
	simLow, simHigh, simTarget = 22.0, 26.0, 24.0
	simLead                    = 15 // minutes
)

var simBegin = time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)

func simulate(t *testing.T, rooms, replicas int, seed uint64) *simulation {
	t.Helper()
	s := &simulation{t: t, db: pgtest.New(t), random: rand.New(rand.NewPCG(seed, 1)), now: simBegin, byOption: map[string]simCommand{}}
	s.db.Now = func() time.Time { return s.now }
	for range replicas {
		s.services = append(s.services, &climate.Service{DB: s.db, Log: slog.New(slog.DiscardHandler), Now: s.db.Now, Link: s})
	}
	s.exec(`insert into branch (code) values ('gangnam')`)
	s.exec(`insert into room (branch_id, no) select 1, i from generate_series(1, $1::int) i`, rooms)
	if err := postgres.InsertAgent(t.Context(), s.db.Pool, "gangnam", postgres.NewCredential{Username: "agent-gangnam", SecretHash: []byte("hash")}); err != nil {
		t.Fatal(err)
	}
	s.exec(`update agent_credential set active = true`)
	if err := postgres.InsertAgent(t.Context(), s.db.Pool, "gangnam", postgres.NewCredential{Username: "agent-standby", SecretHash: []byte("hash")}); err != nil {
		t.Fatal(err)
	}
	s.exec(`insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory)
		select 1, 'v1', now(), now(), true, jsonb_build_object('sensors', array_agg(i::text order by i)) from generate_series(1, $1::int) i`, rooms)
	for no := 1; no <= rooms; no++ {
		r := &simRoom{id: int32(no), ambient: 29 + 4*s.random.Float64()}
		if no%5 == 0 {
			r.ambient = 14 + 4*s.random.Float64()
		}
		r.celsius = r.ambient
		s.rooms = append(s.rooms, r)
		unit := fmt.Sprint("unit ", no)
		option := func(name string, c simCommand) string {
			id := protocol.LeafID("gangnam", unit, name)
			s.byOption[id] = c
			s.exec(`insert into airconditioner_option (id, branch_id, unit, path) values ($1, 1, $2, $3)`, id, unit, []string{name})
			return id
		}
		s.policies = append(s.policies, postgres.ClimatePolicy{
			RoomNo: no, Unit: unit, ArriveOption: option("24", simCommand{r, true, simTarget}), LeaveOption: option("off", simCommand{r, false, 0}),
			Lead: simLead, Low: simLow, High: simHigh, GuestOptions: []string{option("23", simCommand{r, true, 23}), option("25", simCommand{r, true, 25})},
		})
	}
	s.putPolicies()
	return s
}

func (s *simulation) putPolicies() {
	s.t.Helper()
	err := s.db.InTx(s.t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		_, err := postgres.PutClimatePolicies(ctx, tx, 1, s.policies, now)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// share makes each room with an even number use the unit of the room before it.
func (s *simulation) share() {
	for i := 1; i < len(s.rooms); i += 2 {
		first := s.policies[i-1]
		first.RoomNo = i + 1
		s.policies[i] = first
		s.rooms[i].mate, s.rooms[i-1].mate = s.rooms[i-1], s.rooms[i]
	}
	s.putPolicies()
}

// use gives a room the unit of another one. It takes effect with putPolicies.
func (s *simulation) use(room, unit int) {
	name := fmt.Sprint("unit ", unit)
	s.policies = slices.Clone(s.policies)
	p := &s.policies[room-1]
	p.Unit, p.ArriveOption, p.LeaveOption = name, protocol.LeafID("gangnam", name, "24"), protocol.LeafID("gangnam", name, "off")
	p.GuestOptions = []string{}
}

func (s *simulation) exec(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Pool.Exec(s.t.Context(), statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

// Online implements climate.Link. Another agent of the branch, which is not the active one, is connected all the time.
func (s *simulation) Online(string) []string {
	if s.offline {
		return []string{"agent-standby"}
	}
	return []string{"agent-gangnam", "agent-standby"}
}

// Send implements climate.Link: the agent transmits and answers at once, to every replica.
func (s *simulation) Send(to protocol.Peer, m protocol.Message) error {
	command, ok := m.(protocol.ClimateCommand)
	if !ok {
		return fmt.Errorf("unexpected %s", m.Kind())
	}
	result := protocol.ClimateResult{RequestID: command.RequestID, AirConditionerID: command.AirConditionerID, Outcome: protocol.ClimateSent}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, command.AirConditionerID)
	c := s.byOption[command.AirConditionerID]
	c.room.frames++
	switch {
	case s.dead:
		result.Outcome = protocol.ClimateFailed
	case s.losses(c.room) < s.lost, s.ignores > 0 && c.room.frames%s.ignores == 0:
	case c.on:
		c.room.on, c.room.target = true, c.at
	default:
		c.room.on = false
	}
	if mate := c.room.mate; mate != nil {
		mate.on, mate.target = c.room.on, c.room.target
	}
	for _, service := range s.services {
		if err := service.Commanded(s.t.Context(), to.Agent, result); err != nil {
			return err
		}
	}
	return nil
}

// losses decides about a frame of a room, whatever the order in which rooms are served.
func (s *simulation) losses(r *simRoom) float64 {
	return rand.New(rand.NewPCG(uint64(r.id), uint64(r.frames))).Float64()
}

// stay adds a confirmed stay.
func (s *simulation) stay(r *simRoom, start, end time.Time) *simStay {
	s.t.Helper()
	stay := &simStay{start: start, end: end}
	err := s.db.Pool.QueryRow(s.t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
		values (1, $1, 'DONE', 'ADMIN', $2::timestamptz, $3::timestamptz, tstzrange($2::timestamptz, $3::timestamptz + interval '10 minutes')) returning id`, r.id, start, end).Scan(&stay.id)
	if err != nil {
		s.t.Fatal(err)
	}
	r.stays = append(r.stays, stay)
	return stay
}

// move changes the times of a stay.
func (s *simulation) move(stay *simStay, start, end time.Time) {
	s.t.Helper()
	s.exec(`update reservation set start_at = $2::timestamptz, end_at = $3::timestamptz, occupied = tstzrange($2::timestamptz, $3::timestamptz + interval '10 minutes') where id = $1`, stay.id, start, end)
	stay.start, stay.end = start, end
}

func (s *simulation) cancel(stay *simStay) {
	s.exec(`update reservation set state = 'CANCELED' where id = $1`, stay.id)
	stay.canceled = true
}

// minute advances the time: the air, the sensors, the service.
func (s *simulation) minute() {
	s.t.Helper()
	s.now = s.now.Add(time.Minute)
	ids, values := make([]string, len(s.rooms)), make([]float64, len(s.rooms))
	for i, r := range s.rooms {
		if s.random.IntN(200) == 0 {
			r.window = !r.window && s.random.IntN(3) == 0
		}
		goal, constant := r.ambient, 12.0
		if r.on {
			goal, constant = r.target, 5.0
			if r.window {
				goal, constant = r.target+(r.ambient-r.target)*0.15, 6
			}
		}
		r.celsius += (1 - math.Exp(-1/constant)) * (goal - r.celsius)
		ids[i], values[i] = fmt.Sprint(r.id), math.Round((r.celsius+0.05*s.random.NormFloat64())*100)/100
	}
	s.exec(`insert into sensor_reading (branch_id, location, at, celsius, humidity) select 1, l, $1, c, 50 from unnest($2::text[], $3::float8[]) u (l, c)`, s.now, ids, values)
	for _, service := range s.services {
		if err := service.Follow(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// needed reports whether a stay is in progress or begins within lead.
func (r *simRoom) needed(now time.Time, lead time.Duration) bool {
	return slices.ContainsFunc(r.stays, func(stay *simStay) bool {
		return !stay.canceled && !now.Before(stay.start.Add(-lead)) && now.Before(stay.end)
	})
}

// states counts the intents by edge and state.
func (s *simulation) states() map[string]int {
	s.t.Helper()
	rows, err := s.db.Pool.Query(s.t.Context(), `select edge || ' ' || state, count(*) from climate_intent group by 1`)
	if err != nil {
		s.t.Fatal(err)
	}
	counts := map[string]int{}
	var name string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { counts[name] = n; return nil }); err != nil {
		s.t.Fatal(err)
	}
	return counts
}

// overclaimed counts the intents that are shown as working although their unit is in the other state.
func (s *simulation) overclaimed() (n int) {
	s.t.Helper()
	rows, err := s.db.Pool.Query(s.t.Context(), `
		select distinct on (room_id) room_id, edge from climate_intent where sent_at is not null and state = 'working' and judged_at = $1 order by room_id, id desc`, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	var room int32
	var edge string
	if _, err := pgx.ForEachRow(rows, []any{&room, &edge}, func() error {
		if s.rooms[room-1].on != (edge == "arrive") {
			n++
		}
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// disturb cancels, moves, extends or ends some stays.
func (s *simulation) disturb(r *simRoom, i int, stay *simStay, canceled *int) {
	free := func(until time.Time) bool {
		return i+1 == len(r.stays) || !until.Add(10*time.Minute).After(r.stays[i+1].start)
	}
	switch {
	case stay.canceled:
	case s.now.Equal(stay.start.Add(-5*time.Minute)) && s.random.IntN(20) == 0:
		s.cancel(stay)
		*canceled++
	case (s.now.Equal(stay.start.Add(-20*time.Minute)) || s.now.Equal(stay.start.Add(-10*time.Minute))) && s.random.IntN(20) == 0 && free(stay.end.Add(30*time.Minute)):
		s.move(stay, stay.start.Add(30*time.Minute), stay.end.Add(30*time.Minute))
	case s.now.Equal(stay.end.Add(-5*time.Minute)) && s.random.IntN(20) == 0 && free(stay.end.Add(20*time.Minute)):
		s.move(stay, stay.start, stay.end.Add(20*time.Minute))
	case s.now.Equal(stay.end.Add(-25*time.Minute)) && s.random.IntN(20) == 0:
		s.move(stay, stay.start, stay.end.Add(-20*time.Minute))
	}
}
