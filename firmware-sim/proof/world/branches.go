package world

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the zones of the branches, on a machine without a database of zones

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/protocol"
)

// Rooms is the number of rooms of each branch. The last one is the Spare: no customer wishes for it, so it can be
// switched off.
const (
	Rooms = 4
	Spare = Rooms
)

// Branch is a branch of the world. All are open day and night.
type Branch struct {
	Code  string
	Zone  *time.Location
	Front []string // devices of the front doors
}

// branchZones are the time zones of generated branches, in turn. For most of the day, the date in New York is not that of Seoul, and the
// ten-minute marks of Kathmandu are not those of UTC.
var branchZones = []*time.Location{zone("Asia/Seoul"), zone("America/New_York"), zone("Asia/Kathmandu"), zone("Pacific/Auckland")}

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err) // the names are constants, and the programs contain the database of zones
	}
	return z
}

// Branches returns the branches of a world with n of them. Every fifth has two front doors.
func Branches(n int) []Branch {
	list := make([]Branch, n)
	for i := range list {
		list[i] = Branch{Code: fmt.Sprintf("proof-%02d", i+1), Zone: branchZones[i%len(branchZones)], Front: []string{"front_1"}}
		if i%5 == 0 {
			list[i].Front = append(list[i].Front, "front_2")
		}
	}
	return list
}

// In returns a time by the clocks of a branch. It panics if there is no such branch.
func (w *World) In(branch string, t time.Time) time.Time {
	at := slices.IndexFunc(w.Branches, func(b Branch) bool { return b.Code == branch })
	return t.In(w.Branches[at].Zone)
}

// Mark returns the last ten-minute mark by the clocks of a branch.
func (w *World) Mark(branch string, t time.Time) time.Time {
	t = w.In(branch, t).Truncate(time.Minute)
	return t.Add(-time.Duration(t.Minute()%10) * time.Minute)
}

// Doors returns the devices of all its doors.
func (b Branch) Doors() []string {
	doors := append([]string{}, b.Front...)
	for room := range Rooms {
		doors = append(doors, fmt.Sprintf("room_%d", room+1))
	}
	return doors
}

// The price of every room, in won.
const (
	min10, min30, min60 = 3000, 8000, 15000
)

// Price returns the price of a duration: as many hours as fit, then half hours, then tens of minutes
// (docs/specification.md, Prices).
func Price(length time.Duration) int {
	minutes := int(length / time.Minute)
	return minutes/60*min60 + minutes%60/30*min30 + minutes%30/10*min10
}

// branchFile returns the file for `yeolda branch apply`.
func branchFile(branches []Branch) string {
	var text strings.Builder
	text.WriteString("demo: true\nbranches:\n")
	for i, b := range branches {
		fmt.Fprintf(&text, "  - code: %s\n    name: {ko: 증명 %d호점, en: Proof %d}\n    address: 서울특별시 가상구 증명로 1\n    phone: \"02-0000-0000\"\n", b.Code, i+1, i+1)
		fmt.Fprintf(&text, "    timeZone: %s\n", b.Zone)
		fmt.Fprintf(&text, "    frontDoors: [%s]\n    frontPin: \"90%04d\"\n    rooms:\n", strings.Join(b.Front, ", "), i+1)
		for room := 1; room <= Rooms; room++ {
			fmt.Fprintf(&text, "      - {no: %d, machine: 기기 %d, grade: Standard, price: {min10: %d, min30: %d, min60: %d}, pin: \"9%d%04d\"}\n", room, room, min10, min30, min60, room, i+1)
		}
		fmt.Fprintf(&text, "    agents: [{username: %s, secret: %s}]\n", protocol.AgentID(b.Code), fleetconfig.DemoPassword(b.Code))
	}
	text.WriteString("administrators:\n  - {id: hq, password: hq-demo, role: hq}\n")
	return text.String()
}

// simulationFile returns the file for the simulator.
func simulationFile(branches []Branch) string {
	var text strings.Builder
	text.WriteString("branches:\n")
	for _, b := range branches {
		fmt.Fprintf(&text, "  - branch: %s\n    doors: [%s]\n", b.Code, strings.Join(b.Doors(), ", "))
	}
	return text.String()
}
