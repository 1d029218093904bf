// Package contend has several customers request the same slot at the same moment, in the form in which comparable
// systems were measured: 8 concurrent requests for each of 200 slots. Exactly one of each 8 may succeed.
package contend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// The form of the measurement.
const (
	Slots  = 200
	Rivals = 8
)

// outcome is the result of the rivals for one slot.
type outcome struct {
	won, refused, other int
	took                []time.Duration
}

// Run runs the race in a world without faults.
func Run(ctx context.Context, w *world.World, slots int) (part.Part, error) {
	began := time.Now()
	p := part.Part{Name: "race", Title: fmt.Sprintf("Double booking: %d at once for each of %d slots", Rivals, slots), Machine: part.Machine(), Began: began.UTC().Truncate(time.Second)}
	// Half of each slot's rivals use one replica and half the other. Slots of a room are two hours apart.
	first := time.Now().Add(20 * 24 * time.Hour).Truncate(24 * time.Hour)
	var clean, twice, none, other int
	var all []time.Duration
	before, err := holds(ctx, w, first)
	if err != nil {
		return p, err
	}
	for n := range slots {
		rooms := len(w.Branches) * world.Rooms
		branch, room := w.Branches[n%len(w.Branches)].Code, 1+n/len(w.Branches)%world.Rooms
		got, err := contest(ctx, w, branch, room, w.Mark(branch, first.Add(time.Duration(n/rooms)*2*time.Hour)).Add(record.Margin))
		if err != nil {
			return p, err
		}
		all, other = append(all, got.took...), other+got.other
		switch {
		case got.won > 1:
			twice++
		case got.won == 0:
			none++
		default:
			clean++
		}
	}
	after, err := holds(ctx, w, first)
	if err != nil {
		return p, err
	}
	slices.Sort(all)
	at := func(q float64) float64 { return ms(all[min(len(all)-1, int(q*float64(len(all))))]) }
	p.Took = time.Since(began).Seconds()
	p.Checks = []part.Check{{ID: "B1", Rule: "exactly one winner for each slot", Observations: slots, Violations: slots - clean}}
	p.Figures = []part.Figure{
		{Name: "slots with exactly one winner", Value: float64(clean), Bar: fmt.Sprint(slots), Met: clean == slots},
		{Name: "slots with two winners or more", Value: float64(twice), Bar: "0", Met: twice == 0},
		{Name: "slots with none", Value: float64(none), Bar: "0", Met: none == 0},
		{Name: "rows in the database for them", Value: float64(after - before), Bar: fmt.Sprint(slots), Met: after-before == slots},
		{Name: "answers other than 200 and 409", Value: float64(other), Bar: "0", Met: other == 0},
		{Name: "answer, median", Value: at(.5), Unit: "ms"},
		{Name: "answer, 99 of 100", Value: at(.99), Unit: "ms", Bar: "at most 1000", Met: at(.99) <= 1000},
		{Name: "slowest answer", Value: at(1), Unit: "ms"},
	}
	p.Series = []part.Series{Curve("answer", "How long an answer took when 8 asked at once", all)}
	return p, nil
}

// contest starts the rivals at once.
func contest(ctx context.Context, w *world.World, branch string, room int, start time.Time) (outcome, error) {
	body, err := json.Marshal(map[string]any{"branch": branch, "room": room,
		"startDateTime": w.In(branch, start).Format("200601021504"), "endDateTime": w.In(branch, start.Add(time.Hour)).Format("200601021504")})
	if err != nil {
		return outcome{}, err
	}
	var (
		mu   sync.Mutex
		got  outcome
		fail error
		run  sync.WaitGroup
		gun  = make(chan struct{})
	)
	for rival := range Rivals {
		run.Go(func() {
			jar, err := cookiejar.New(nil)
			if err != nil {
				panic(err) // without options it never fails
			}
			client := &http.Client{Jar: jar, Timeout: 30 * time.Second}
			api := w.Replicas[rival%len(w.Replicas)].API
			<-gun
			began := time.Now()
			status, err := post(ctx, client, api+"/reservation", body)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			got.took = append(got.took, took)
			switch {
			case err != nil:
				fail = err
			case status == http.StatusOK:
				got.won++
			case status == http.StatusConflict:
				got.refused++
			default:
				got.other++
			}
		})
	}
	close(gun)
	run.Wait()
	return got, fail
}

func post(ctx context.Context, client *http.Client, address string, body []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// holds counts all holds since a time.
func holds(ctx context.Context, w *world.World, from time.Time) (n int, err error) {
	conn, err := pgx.Connect(ctx, w.Database)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	return n, conn.QueryRow(ctx, `select count(*) from reservation where start_at >= $1`, from).Scan(&n)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Curve returns the cumulative distribution of sorted times.
func Curve(name, plot string, sorted []time.Duration) part.Series {
	s := part.Series{Name: name, Plot: plot, XName: "ms", YName: "of 100, at most so long", LogX: true}
	const points = 200
	for n := range points + 1 {
		if len(sorted) == 0 {
			break
		}
		s.X = append(s.X, ms(sorted[min(len(sorted)-1, n*len(sorted)/points)]))
		s.Y = append(s.Y, 100*float64(n)/points)
	}
	return s
}
