package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

const (
	// goalAgents is the fleet that one service on a small machine must carry, with the bars below.
	goalAgents    = 100_000
	barOnline     = 150 * time.Second
	barMemory     = 28 // KiB of resident memory for each agent
	barCores      = 1  // at rest
	barGenerator  = 12 // KiB of the generator's resident memory for each agent
	barPress      = 250 * time.Millisecond
	barRecovery   = 180 * time.Second
	fleetRate     = 200 // presses per second over all agents
	fleetPresses  = 20 * time.Second
	fleetSettle   = 20 * time.Second // after the last agent has connected
	fleetRest     = 30 * time.Second
	fleetWatch    = 5 * time.Second // after the last agent is back
	fleetTimeout  = 5 * time.Minute // for all agents to be online
	branchesInOne = 10_000          // in one file of branches
)

// fleet measures one service with growing numbers of light agents: the time until all are online, memory, processor time
// at rest, presses, and the time until all are back after the service was killed. PostgreSQL is a process of its own, so
// that it survives.
func fleet(ctx context.Context, root, dir string, sizes []int, log io.Writer, p *part.Part) (err error) {
	slices.Sort(sizes)
	limit := openFiles()
	if most := limit - limit/8; sizes[len(sizes)-1] > most {
		p.Notes = append(p.Notes, fmt.Sprintf("This machine allows a process %d open files, and the hard limit cannot be raised here. A service leaves an eighth of them to the database and to requests, so this run ends at %d agents. A systemd unit with LimitNOFILE, or ulimit -n, raises the limit.", limit, most))
		fmt.Println(p.Notes[len(p.Notes)-1])
		sizes = append(slices.DeleteFunc(sizes, func(n int) bool { return n > most }), most)
	}
	s, server, err := startServices(ctx, dir, sizes, world.StackOptions{Root: root, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(), server.Stop()) }()
	fmt.Println("profiles of the service at", s.MetricsAt+"/debug/pprof/")
	curves := newCurves()
	for _, n := range sizes {
		m := fleetMeasurement{stack: s, postgres: server.PID(), agents: n, pressed: names(reachable(n, sizes)), part: p, log: log}
		if err := m.run(ctx, filepath.Join(dir, world.Simulator)); err != nil {
			return fmt.Errorf("%d agents: %w", n, err)
		}
		curves.add(m)
		if n != sizes[len(sizes)-1] { // the next size begins with a fresh service
			if err := restart(ctx, s); err != nil {
				return err
			}
		}
	}
	p.Series = append(p.Series, curves.series()...)
	p.Figures = append(p.Figures, atLeast("agents of one service", float64(sizes[len(sizes)-1]), goalAgents))
	p.Notes = append(p.Notes,
		fmt.Sprintf("The agents run beside the service, all of them light: the packets of the real agent without its hardware. Each has an address of its own in 127.0.0.0/8. They connect at once, and again at once after the service was killed. Presses are those of a manager at front doors of a few hundred branches spread over the fleet, %d a second for %s; the time is that from the request to the event with the result.", fleetRate, fleetPresses),
		"Memory of the service is its resident memory with all agents at rest, less that before the first connected, for each agent. Memory of sockets in the kernel is not included, neither here nor for the agents. Cores are processor time of the process in a time without presses; PostgreSQL's is that of all its processes.",
		"Stacks are those of the two goroutines that mochi-mqtt has for a connection. The functions in which the reading one waits use 5.4 KiB, above the quarter at which the Go runtime would shrink a stack of 16 KiB; handling a packet needs more than 8. The stack of the writing one is 4 or 8 KiB.",
		fmt.Sprintf("After kill -9, %d agents are watched while the others return: a press at a branch whose agent is connected from before the press until its result must open the door.", probes))
	return nil
}

// startServices starts PostgreSQL, and the service that options describe with the branches of fleets of these sizes.
func startServices(ctx context.Context, dir string, sizes []int, options world.StackOptions) (*world.Stack, *world.Process, error) {
	files, err := branchFiles(options.Root, dir, sizes)
	if err != nil {
		return nil, nil, err
	}
	addresses, err := world.FreeAddresses(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	database, server, err := world.StartPostgres(ctx, dir, addresses[0], options.Log)
	if err != nil {
		return nil, nil, err
	}
	options.Bin, options.Dir, options.Branches, options.NoSimulator = dir, dir, files, true
	options.Env = map[string]string{"YEOLDA_RATE_LIMITS": "off", "YEOLDA_LOG_LEVEL": "warn", "YEOLDA_DATABASE_URL": database}
	s, err := world.StartStack(ctx, options)
	if err != nil {
		return nil, nil, errors.Join(err, server.Stop())
	}
	return s, server, nil
}

func restart(ctx context.Context, s *world.Stack) error {
	if err := s.Signal(world.Service, terminate); err != nil {
		return err
	}
	return s.Run(ctx, world.Service, "serve")
}

// branchFiles writes the files of a fleet's branches.
func branchFiles(root, dir string, sizes []int) ([]string, error) {
	agents := sizes[len(sizes)-1]
	files := []string{filepath.Join(root, "deploy/demo/branches.yaml")}
	for first := 0; first < agents; first += branchesInOne {
		text, err := fleetconfig.BranchFilePart(first, min(branchesInOne, agents-first))
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, fmt.Sprintf("fleet-%d.yaml", first))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	file := filepath.Join(dir, "fleet-manager.yaml")
	numbers := reachable(agents, sizes)
	text, err := fleetconfig.BranchFileOf(numbers) // a manager's branches belong to the same file
	if err != nil {
		return nil, err
	}
	text = fmt.Appendf(text, "administrators:\n  - {id: %s, password: %s, role: manager, branches: [%s]}\n", manager, managerPassword, strings.Join(names(numbers), ", "))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	return append(files, file), nil
}

// The account that presses. Its sessions name its branches in each request; those of headquarters would name all.
const manager, managerPassword = "fleet-manager", "fleet-demo"

// reachable returns the numbers of the branches whose buttons are pressed, as far as a fleet of this size has them: those of
// the watched agents, and for each size as many spread over its fleet.
func reachable(agents int, sizes []int) (numbers []int) {
	for n := range probes {
		numbers = append(numbers, n+1)
		for _, size := range sizes {
			numbers = append(numbers, probes+1+n*(size-probes)/probes)
		}
	}
	slices.Sort(numbers)
	return slices.DeleteFunc(slices.Compact(numbers), func(n int) bool { return n > agents })
}

func names(numbers []int) (list []string) {
	for _, n := range numbers {
		list = append(list, fleetconfig.FleetName(n))
	}
	return list
}

// fleetMeasurement is the measurement of one size.
type fleetMeasurement struct {
	stack    *world.Stack
	postgres int // process id
	agents   int
	pressed  []string // branches
	part     *part.Part
	log      io.Writer

	memory, stacks, generator             float64 // KiB for each agent
	cores, databaseCores, generatorCores  float64
	online, back                          time.Duration
	presses                               sample
	recoveryPresses, refused, unconnected int
}

func (m *fleetMeasurement) run(ctx context.Context, simulator string) error {
	service := m.stack.PID(world.Service)
	before, err := residentOf(service)
	if err != nil {
		return err
	}
	began := time.Now()
	swarm, err := startSwarm(ctx, simulator, []string{m.stack.MQTTAt}, m.agents, 0)
	if err != nil {
		return err
	}
	defer swarm.stop()
	if m.online, err = swarm.await(ctx, began, int64(m.agents), fleetTimeout); err != nil {
		return err
	}
	m.say("online after %s", m.online.Round(10*time.Millisecond))
	if err := pause(ctx, fleetSettle); err != nil {
		return err
	}
	if err := m.rest(ctx, swarm, service, before); err != nil {
		return err
	}
	press, err := administrator(ctx, m.stack.API)
	if err != nil {
		return err
	}
	m.presses = atRate(ctx, fleetRate, fleetPresses, func(ctx context.Context, n int64) (bool, error) {
		err := press(ctx, m.pressed[n%int64(len(m.pressed))])
		return err == nil, err
	})
	m.say("presses: p50 %s, p99 %s, slowest %s, not opened %d", m.presses.p50, m.presses.p99, m.presses.max, m.presses.failed)
	if err := m.recover(ctx, swarm, press); err != nil {
		return err
	}
	m.figures(swarm)
	return nil
}

// rest measures memory and processor time without presses.
func (m *fleetMeasurement) rest(ctx context.Context, swarm *swarm, service int, before float64) error {
	all := func() (times [3]time.Duration, err error) {
		if times[0], err = computedBy(service); err != nil {
			return times, err
		}
		if times[1], err = computedBelow(m.postgres); err != nil {
			return times, err
		}
		times[2], err = swarm.computed()
		return times, err
	}
	first, err := all()
	if err != nil {
		return err
	}
	if err := pause(ctx, fleetRest); err != nil {
		return err
	}
	second, err := all()
	if err != nil {
		return err
	}
	cores := func(i int) float64 { return (second[i] - first[i]).Seconds() / fleetRest.Seconds() }
	m.cores, m.databaseCores, m.generatorCores = cores(0), cores(1), cores(2)
	after, err := residentOf(service)
	if err != nil {
		return err
	}
	m.memory = (after - before) / 1024 / float64(m.agents)
	stacks, err := gauge(ctx, m.stack, "go_memstats_stack_inuse_bytes ")
	if err != nil {
		return err
	}
	m.stacks = stacks / 1024 / float64(m.agents)
	if m.generator, err = swarm.memory(); err != nil {
		return err
	}
	m.say("at rest: service %.1f KiB an agent, of which stacks %.1f KiB, %.2f cores; database %.2f cores; generator %.1f KiB an agent, %.2f cores", m.memory, m.stacks, m.cores, m.databaseCores, m.generator, m.generatorCores)
	return nil
}

// recover kills the service, starts it again, and presses at watched branches until all agents are back.
func (m *fleetMeasurement) recover(ctx context.Context, swarm *swarm, press doorPresser) error {
	accepted := swarm.stats().Accepted
	killed := time.Now()
	if err := m.stack.Signal(world.Service, kill); err != nil {
		return err
	}
	if err := m.stack.Run(ctx, world.Service, "serve"); err != nil {
		return err
	}
	m.say("the service listens again %s after kill -9", time.Since(killed).Round(10*time.Millisecond))
	watching, done := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		m.watch(watching, swarm, press)
	}()
	var err error
	m.back, err = swarm.await(ctx, killed, accepted+int64(m.agents), fleetTimeout)
	_ = pause(ctx, fleetWatch)
	done()
	<-watched
	if err != nil {
		return err
	}
	m.say("all back %s after kill -9; %d presses at connected branches, %d refused", m.back.Round(10*time.Millisecond), m.recoveryPresses, m.refused)
	return nil
}

// watch presses at watched branches whose agent is connected. A press counts if the agent stays connected until its result.
func (m *fleetMeasurement) watch(ctx context.Context, swarm *swarm, press doorPresser) {
	const interval = 50 * time.Millisecond
	for n := 0; ctx.Err() == nil; n++ {
		connection, branch := swarm.probe(n)
		if connection == 0 {
			m.unconnected++
			_ = pause(ctx, interval/10)
			continue
		}
		err := press(ctx, branch)
		if now, _ := swarm.probe(n); ctx.Err() == nil && now == connection {
			m.recoveryPresses++
			if err != nil {
				m.refused++
				fmt.Fprintf(m.log, "refused: %s: %v\n", branch, err)
			}
		}
		_ = pause(ctx, interval)
	}
}

func (m *fleetMeasurement) say(format string, args ...any) {
	fmt.Printf("%d agents: %s\n", m.agents, fmt.Sprintf(format, args...))
}

func (m *fleetMeasurement) figures(swarm *swarm) {
	bar := func(name string, value, bar float64, unit string) {
		f := part.Figure{Name: fmt.Sprintf("%d agents, %s", m.agents, name), Value: value, Unit: unit}
		if m.agents >= goalAgents {
			f = atMost(f.Name, value, bar)
			f.Unit = unit
		}
		m.part.Figures = append(m.part.Figures, f)
	}
	bar("time until all are online", m.online.Seconds(), barOnline.Seconds(), "s")
	bar("memory of the service for each", m.memory, barMemory, "KiB")
	bar("memory of the generator for each", m.generator, barGenerator, "KiB")
	bar("cores of the service at rest", m.cores, barCores, "")
	bar(fmt.Sprintf("%d presses a second, p99", fleetRate), ms(m.presses.p99), ms(barPress), "ms")
	bar("presses that opened no door", float64(m.presses.failed), 0, "")
	bar("kill -9: time until all are back", m.back.Seconds(), barRecovery.Seconds(), "s")
	bar("kill -9: refused presses at connected branches", float64(m.refused), 0, "")
	rest := func(name string, value float64, unit string) {
		m.part.Figures = append(m.part.Figures, part.Figure{Name: fmt.Sprintf("%d agents, %s", m.agents, name), Value: value, Unit: unit})
	}
	rest(fmt.Sprintf("%d presses a second, p50", fleetRate), ms(m.presses.p50), "ms")
	rest("memory of the service for each, stacks", m.stacks, "KiB")
	rest("kill -9: presses at connected branches", float64(m.recoveryPresses), "")
	rest("cores of PostgreSQL at rest", m.databaseCores, "")
	rest("cores of the generator at rest", m.generatorCores, "")
	rest("connections that failed", float64(swarm.stats().Failed), "")
}

// doorPresser presses the button of a branch's front doors. It returns an error unless they open.
type doorPresser func(ctx context.Context, branch string) error

// administrator logs in and returns a doorPresser.
func administrator(ctx context.Context, api string) (doorPresser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	staff := *client
	staff.Jar = jar
	if err := call(ctx, &staff, api+"/admin/login", map[string]any{"id": manager, "password": managerPassword}, nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context, branch string) error {
		var accepted struct {
			Data struct {
				RequestID string `json:"requestId"`
			} `json:"data"`
		}
		if err := roundTrip(ctx, &staff, "POST", api+"/admin/door/v2/unlock/"+branch+"/front", strings.NewReader(""), &accepted); err != nil {
			return err
		}
		event, err := eventFor(ctx, &staff, api+"/admin/door/v2/unlock/subscribe?requestId="+accepted.Data.RequestID)
		if err == nil && !opened(event) {
			err = fmt.Errorf("request %s: %s", accepted.Data.RequestID, event)
		}
		return err
	}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// curves are the figures by the number of agents.
type curves struct {
	order []string
	of    map[string]*part.Series
}

func newCurves() *curves { return &curves{of: map[string]*part.Series{}} }

func (c *curves) add(m fleetMeasurement) {
	for _, point := range []struct {
		plot, unit, name string
		value            float64
	}{
		{"Memory for each agent", "KiB", "service", m.memory},
		{"Memory for each agent", "KiB", "generator", m.generator},
		{"Processor time at rest", "cores", "service", m.cores},
		{"Processor time at rest", "cores", "PostgreSQL", m.databaseCores},
		{"Processor time at rest", "cores", "generator", m.generatorCores},
		{"Time until every agent is online", "s", "start", m.online.Seconds()},
		{"Time until every agent is online", "s", "after kill -9", m.back.Seconds()},
		{fmt.Sprintf("%d presses a second over all agents", fleetRate), "ms", "p50", ms(m.presses.p50)},
		{fmt.Sprintf("%d presses a second over all agents", fleetRate), "ms", "p99", ms(m.presses.p99)},
	} {
		key := point.plot + "/" + point.name
		s := c.of[key]
		if s == nil {
			s = &part.Series{Name: point.name, Plot: point.plot, XName: "agents", YName: point.unit, LogX: true}
			c.of[key] = s
			c.order = append(c.order, key)
		}
		s.X, s.Y = append(s.X, float64(m.agents)), append(s.Y, point.value)
	}
}

func (c *curves) series() (list []part.Series) {
	for _, key := range c.order {
		list = append(list, *c.of[key])
	}
	return list
}

// parseSizes parses numbers of agents separated by commas.
func parseSizes(list string) (sizes []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n <= probes || n > fleetconfig.MaxFleet {
			return nil, fmt.Errorf("%q is not a number of agents from %d to %d", text, probes+1, fleetconfig.MaxFleet)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}
