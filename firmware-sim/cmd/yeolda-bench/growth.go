package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
)

// benchmarks holds the results of go test -bench, by name without the package's own prefix, and by unit.
type benchmarks map[string]map[string]float64

// benchmark runs benchmarks of a package of the checkout. They measure in one process what is not visible from outside:
// an exchange over the broker, and statements beside pgbench.
func benchmark(ctx context.Context, root, pkg, name string) (benchmarks, error) {
	command := exec.CommandContext(ctx, "go", "test", pkg, "-run", "^$", "-bench", "^"+name+"$", "-benchtime", "1x", "-timeout", "30m")
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s of %s: %w\n%s", name, pkg, err, out)
	}
	return readBenchmarks(string(out), name), err
}

// readBenchmarks parses lines like "BenchmarkX/sub-2  1  12.5 unit  3 other".
func readBenchmarks(out, name string) benchmarks {
	found := benchmarks{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		full := fields[0]
		if i := strings.LastIndexByte(full, '-'); i > 0 { // the number of processors
			full = full[:i]
		}
		sub, ours := strings.CutPrefix(full+"/", name+"/")
		if !ours {
			continue
		}
		sub = strings.TrimSuffix(sub, "/")
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				values[fields[i+1]] = value
			}
		}
		found[sub] = values
	}
	return found
}

const exchangeAlone = "exchange, one in flight, embedded, p50"

// exchange measures an exchange with an agent over the embedded broker beside Mosquitto.
func exchange(ctx context.Context, root string, p *part.Part) error {
	found, err := benchmark(ctx, root, "./cloud/internal/broker", "BenchmarkExchange")
	if err != nil {
		return err
	}
	ours, theirs := found["embedded/1"], found["mosquitto/1"]
	crowd, theirCrowd := found["embedded/100"], found["mosquitto/100"]
	if theirs == nil {
		p.Notes = append(p.Notes, "Mosquitto is not installed: the exchange over the embedded broker has no comparison.")
		return nil
	}
	p.Figures = append(p.Figures,
		part.Figure{Name: exchangeAlone, Value: ours["p50-us"], Unit: "µs"},
		part.Figure{Name: "exchange, one in flight, embedded, p99", Value: ours["p99-us"], Unit: "µs"},
		part.Figure{Name: "exchange, one in flight, Mosquitto, p50", Value: theirs["p50-us"], Unit: "µs"},
		part.Figure{Name: "exchange, one in flight, Mosquitto, p99", Value: theirs["p99-us"], Unit: "µs"},
		atMost("exchange, one in flight, p50, of Mosquitto's", ours["p50-us"]/theirs["p50-us"], 1),
		part.Figure{Name: "exchange, 100 in flight, embedded", Value: crowd["exchanges/s"], Unit: "per s"},
		part.Figure{Name: "exchange, 100 in flight, Mosquitto", Value: theirCrowd["exchanges/s"], Unit: "per s"},
		atLeast("exchange, 100 in flight, rate, of Mosquitto's", crowd["exchanges/s"]/theirCrowd["exchanges/s"], 1),
	)
	return nil
}

// alone measures the statements of an unlock without the rest, and adds up its parts: the two requests answered with
// constants, two exchanges with the agent (ask and claim, grant and result), and the statements. The exchange is
// measured in one process, so the sum is a lower bound.
func alone(ctx context.Context, root string, p *part.Part) error {
	found, err := benchmark(ctx, root, "./cloud/internal/postgres", "BenchmarkDoor")
	if err != nil {
		return err
	}
	of := found[""]
	value := func(name string) float64 {
		for _, f := range p.Figures {
			if f.Name == name {
				return f.Value
			}
		}
		return 0
	}
	floor, exchange := value("floor, 1 in flight, p50"), value(exchangeAlone)/1000
	p.Figures = append(p.Figures,
		part.Figure{Name: "statements of an unlock alone, press, p50", Value: of["press-p50-us"], Unit: "µs"},
		part.Figure{Name: "statements of an unlock alone, grant (on disk), p50", Value: of["grant-p50-us"], Unit: "µs"},
		part.Figure{Name: "statements of an unlock alone, result, p50", Value: of["result-p50-us"], Unit: "µs"},
		part.Figure{Name: "statements of an unlock alone, all three, p50", Value: of["p50-us"], Unit: "µs"},
	)
	if floor > 0 && exchange > 0 {
		sum := floor + 2*exchange + of["p50-us"]/1000
		p.Figures = append(p.Figures,
			part.Figure{Name: "an unlock's parts alone (floor, two exchanges, three statements), p50", Value: sum, Unit: "ms"},
			part.Figure{Name: "an unlock's parts alone, p50, of the floor's", Value: sum / floor},
		)
	}
	return nil
}

// distant measures presses at a branch that is 50 ms away, there and back, with and without an announcement.
func distant(ctx context.Context, root string, p *part.Part) error {
	found, err := benchmark(ctx, root, "./cloud/internal/access", "BenchmarkDistantUnlock")
	if err != nil {
		return err
	}
	plain, announced := found["plain"], found["announced"]
	p.Figures = append(p.Figures,
		part.Figure{Name: "unlock at a branch 50 ms away, p50", Value: plain["p50-ms"], Unit: "ms"},
		atMost("announced unlock at a branch 50 ms away, p50, ms", announced["p50-ms"], 60),
		atLeast("announced unlock at a branch 50 ms away, granted at once, %", announced["at-once-%"], 99),
	)
	return nil
}

// holds measures holds beside pgbench.
func holds(ctx context.Context, root string, p *part.Part) error {
	found, err := benchmark(ctx, root, "./cloud/internal/postgres", "BenchmarkHoldAgainstPgbench")
	if err != nil {
		return err
	}
	of := found[""]
	if of == nil {
		p.Notes = append(p.Notes, "pgbench is not installed: holds have no comparison.")
		return nil
	}
	p.Figures = append(p.Figures,
		part.Figure{Name: "holds, 16 clients", Value: of["holds/s"], Unit: "per s"},
		part.Figure{Name: "pgbench, the same statement", Value: of["pgbench/s"], Unit: "per s"},
		atLeast("holds, of pgbench's rate", of["ratio"], 0.75),
	)
	return nil
}

// constantShare is the least share of a constant answer's rate that a look-up may have while nothing changes.
const constantShare = 0.5

// lookUps measures how the look-up grows with reservations and rooms, beside constant answers.
func lookUps(ctx context.Context, root string, p *part.Part) error {
	byRows, failed := benchmark(ctx, root, "./cloud/internal/httpapi", "BenchmarkLookUp")
	byRooms, err := benchmark(ctx, root, "./cloud/internal/httpapi", "BenchmarkLookUpByRooms")
	failed = errors.Join(failed, err)
	ofADay, err := benchmark(ctx, root, "./cloud/internal/httpapi", "BenchmarkLookUpOfADay")
	failed = errors.Join(failed, err)
	rows := part.Series{Name: "look-up, 12 rooms", Plot: "Look-ups as reservations grow", XName: "reservations", YName: "look-ups per s", LogX: true}
	changed := part.Series{Name: "look-up after a change, 12 rooms", Plot: rows.Plot, XName: rows.XName, YName: rows.YName, LogX: true}
	rooms := part.Series{Name: "look-up", Plot: "Look-ups as rooms grow", XName: "rooms of the branch", YName: "look-ups per s", LogX: true}
	constants := part.Series{Name: "the same answer as a constant", Plot: rooms.Plot, XName: rooms.XName, YName: rooms.YName, LogX: true}
	sizes := []int{1_000, 100_000, 1_000_000}
	for _, n := range sizes {
		if of := byRows[strconv.Itoa(n)]; of != nil {
			rows.X, rows.Y = append(rows.X, float64(n)), append(rows.Y, of["look-ups/s"])
			p.Figures = append(p.Figures,
				part.Figure{Name: fmt.Sprintf("look-up, %d reservations, p50", n), Value: of["p50-ms"], Unit: "ms"},
				atLeast(fmt.Sprintf("look-up, %d reservations, of the rate of a constant answer", n), of["of-constant"], constantShare))
		}
	}
	for _, n := range sizes {
		if of := byRows[fmt.Sprintf("changed-%d", n)]; of != nil {
			changed.X, changed.Y = append(changed.X, float64(n)), append(changed.Y, of["look-ups/s"])
		}
	}
	// The sizes are measured minutes apart: the machine's speed of that time cancels out.
	for _, of := range []struct{ name, run string }{{rows.Name, ""}, {changed.Name, "changed-"}} {
		small, large := byRows[of.run+strconv.Itoa(sizes[0])], byRows[of.run+strconv.Itoa(sizes[2])]
		if small != nil && large != nil {
			p.Figures = append(p.Figures, atLeast(of.name+", 1,000,000 reservations, of the rate with 1,000 (each beside a constant answer)",
				large["of-constant"]/small["of-constant"], 0.9))
		}
	}
	for _, n := range []int{1, 12, 50, 200} {
		of := byRooms[strconv.Itoa(n)]
		if of == nil {
			continue
		}
		rooms.X, rooms.Y = append(rooms.X, float64(n)), append(rooms.Y, of["look-ups/s"])
		constants.X, constants.Y = append(constants.X, float64(n)), append(constants.Y, of["constant/s"])
		if n >= 12 {
			p.Figures = append(p.Figures, atLeast(fmt.Sprintf("look-up, %d rooms, of the rate of a constant answer", n), of["of-constant"], constantShare))
		}
	}
	if unchanged := ofADay["unchanged"]; unchanged != nil {
		p.Figures = append(p.Figures,
			part.Figure{Name: "a whole day of 12 rooms as a constant answer", Value: unchanged["constant/s"], Unit: "per s"},
			atLeast("look-up of a whole day, unchanged, of the rate of a constant answer", unchanged["of-constant"], constantShare),
			atLeast("look-up of a whole day, conditional, of the rate of a constant answer", ofADay["conditional"]["of-constant"], constantShare),
			part.Figure{Name: "look-up of a whole day, each after a change, of the rate of a constant answer", Value: ofADay["changed"]["of-constant"]},
		)
	}
	p.Series = append(p.Series, rows, changed, rooms, constants)
	return failed
}

func atMost(name string, value, bar float64) part.Figure {
	return part.Figure{Name: name, Value: value, Bar: fmt.Sprintf("at most %g", bar), Met: value <= bar}
}

func atLeast(name string, value, bar float64) part.Figure {
	return part.Figure{Name: name, Value: value, Bar: fmt.Sprintf("at least %g", bar), Met: value >= bar}
}
