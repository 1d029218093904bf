package branchfile_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/branchfile"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// applier applies files to one database.
type applier struct {
	*testing.T
	db   *postgres.DB
	keys *seal.Keyring
}

func newApplier(t *testing.T) applier {
	t.Helper()
	keys, err := seal.ParseKeys(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return applier{t, pgtest.New(t), keys}
}

func (a applier) plan(file branchfile.File) (branchfile.Plan, error) {
	return branchfile.MakePlan(a.Context(), a.db.Pool, a.keys, "test.yaml", file, time.Now())
}

// apply applies a file and returns the plan that was shown.
func (a applier) apply(file branchfile.File) string {
	a.Helper()
	plan, err := a.plan(file)
	if err != nil {
		a.Fatal(err)
	}
	if err := branchfile.Apply(a.Context(), a.db, a.keys, "test.yaml", file, plan, "cli:test"); err != nil {
		a.Fatal(err)
	}
	return plan.String()
}

func parse(t *testing.T, yaml string) branchfile.File {
	t.Helper()
	file, err := branchfile.Parse("test.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDemoFileIsAppliedOnce(t *testing.T) {
	t.Parallel()
	a, file := newApplier(t), demoFile(t)
	golden(t, "testdata/demo.plan", a.apply(file))
	if again := a.apply(file); again != "no changes\n" {
		t.Errorf("second apply:\n%s", again)
	}
	gangnam, err := a.db.Branch(t.Context(), "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	want := file.Branches[0].Branch
	want.ID, want.Revision = gangnam.ID, gangnam.Revision
	for i, room := range file.Branches[0].Rooms {
		room.ID = gangnam.Rooms[i].ID
		want.Rooms = append(want.Rooms, room.Room)
	}
	if diff := cmp.Diff(want, gangnam, cmp.Comparer(func(x, y *time.Location) bool { return x.String() == y.String() })); diff != "" {
		t.Errorf("gangnam (-file +database):\n%s", diff)
	}
	manager, err := postgres.AdministratorByLogin(t.Context(), a.db.Pool, "gangnam-manager")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := account.VerifyPassword("gangnam-demo", manager.PasswordHash); !ok || err != nil {
		t.Errorf("the manager's password: %v, %v", ok, err)
	}
	if !slices.Equal(manager.Branches, []string{"gangnam"}) || manager.Role != "manager" {
		t.Errorf("manager %+v", manager)
	}
	demo, err := postgres.DemoAccounts(t.Context(), a.db.Pool)
	if err != nil {
		t.Fatal(err)
	}
	want2 := []string{"administrator gangnam-manager", "administrator hq", "agent agent-gangnam", "agent agent-hongdae", "agent agent-jamsil"}
	if diff := cmp.Diff(want2, demo); diff != "" {
		t.Error(diff)
	}
}

const twoRooms = `
branches:
  - code: a
    name: {ko: 가, en: A}
    rooms:
      - {no: 1, grade: Gold, price: {min10: 3000}}
      - {no: 2, pin: "4321"}
`

func TestChangesAreShownAndMade(t *testing.T) {
	t.Parallel()
	a := newApplier(t)
	a.apply(parse(t, twoRooms))
	before := a.pins("a")
	if len(before["front"]) != 6 || len(before["room_1"]) != 6 || before["room_2"] != "4321" {
		t.Fatalf("PINs %v", before)
	}
	changed := parse(t, `
branches:
  - code: a
    name: {ko: 가나, en: A}
    address: 서울
    hours: {everyday: 10:00-22:00, mon: closed}
    breaks: {sat: [12:00-13:00, 18:00-19:00]}
    closures: [{from: 2026-12-01, to: 2026-12-02, reason: 공사}]
    holidays: {closed: true, open: [2026-12-25], extra: [{date: 2026-12-31, name: 임시공휴일}], removed: [2027-01-01]}
    frontDoors: [front_1, front_2]
    horizonDays: 30
    rooms:
      - {no: 1, grade: Stella, price: {min10: 3500, min60: 20000}}
      - {no: 3, enabled: false}
`)
	golden(t, "testdata/changed.plan", a.apply(changed))
	if again := a.apply(changed); again != "no changes\n" {
		t.Errorf("second apply:\n%s", again)
	}
	after := a.pins("a")
	if after["front"] != before["front"] || after["room_1"] != before["room_1"] {
		t.Error("a made-up PIN was replaced")
	}
	b, err := a.db.Branch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if room, _ := b.Room(2); room.Enabled {
		t.Error("a room that is not in the file is still enabled")
	}
	// The same PIN in the file is no change. A different one is, and it is not shown.
	withPIN := changed
	withPIN.Branches[0].PINs["front"] = before["front"]
	if plan := a.apply(withPIN); plan != "no changes\n" {
		t.Errorf("the same PIN: %s", plan)
	}
	withPIN.Branches[0].PINs["front"] = "90817263"
	if plan := a.apply(withPIN); plan != "~ pin a/front: from the file\n" {
		t.Errorf("another PIN: %s", plan)
	}
	if pin := a.pins("a")["front"]; pin != "90817263" {
		t.Errorf("PIN %s", pin)
	}
}

// pins returns the PINs of a branch by device.
func (a applier) pins(code string) map[string]string {
	a.Helper()
	states, err := postgres.BranchStates(a.Context(), a.db.Pool, []string{code})
	if err != nil {
		a.Fatal(err)
	}
	pins := map[string]string{}
	for device, sealed := range states[code].PINs {
		plain, err := a.keys.Open("door-pin", sealed)
		if err != nil {
			a.Fatal(err)
		}
		pins[device] = string(plain)
	}
	return pins
}

func TestStaffSwitchRoomsNotTheFile(t *testing.T) {
	t.Parallel()
	a := newApplier(t)
	a.apply(parse(t, twoRooms))
	if _, err := a.db.Pool.Exec(t.Context(), `update room set enabled = false where no = $1`, 1); err != nil {
		t.Fatal(err)
	}
	if plan := a.apply(parse(t, twoRooms)); plan != "no changes\n" {
		t.Errorf("a room that staff disabled: %s", plan)
	}
	says := parse(t, strings.Replace(twoRooms, "{no: 1,", "{no: 1, enabled: true,", 1))
	if plan := a.apply(says); plan != "~ room a/1: state disabled → enabled\n" {
		t.Errorf("a file that enables the room: %s", plan)
	}
}

func TestRoomWithReservationsCannotBeDisabled(t *testing.T) {
	t.Parallel()
	a := newApplier(t)
	a.apply(parse(t, twoRooms))
	b, err := a.db.Branch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	room, _ := b.Room(2)
	start := time.Now().Add(time.Hour).Truncate(booking.SlotLength)
	_, err = postgres.InsertHold(t.Context(), a.db.Pool, postgres.NewHold{
		Room: room.ID, Interval: booking.Interval{Start: start, End: start.Add(time.Hour)},
		Source: booking.Customer, Token: []byte("t"), ExpiresAt: time.Now().Add(time.Minute),
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for rooms, want := range map[string]string{
		"{no: 1}":                          "leaves room 2 out, which has 1 reservations to come; expected it to stay until they are over, moved or cancelled",
		"{no: 1}, {no: 2, enabled: false}": "disables room 2, which has 1 reservations to come; expected it to be enabled until they are over, moved or cancelled",
	} {
		_, err = a.plan(parse(t, "branches:\n  - code: a\n    name: {ko: 가, en: A}\n    rooms: ["+rooms+"]\n"))
		want = "test.yaml:2:1: branch a " + want
		if problems := (branchfile.Problems)(nil); !errors.As(err, &problems) || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestNothingIsDoneThatWasNotShown(t *testing.T) {
	t.Parallel()
	a := newApplier(t)
	file := parse(t, twoRooms)
	plan, err := a.plan(file)
	if err != nil {
		t.Fatal(err)
	}
	// Two operators saw the same plan: one succeeds, the other receives ErrChanged.
	var errs [2]error
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = branchfile.Apply(t.Context(), a.db, a.keys, "test.yaml", file, plan, "cli:test") })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), branchfile.ErrChanged) {
		t.Errorf("%v, %v", errs[0], errs[1])
	}
}

func TestOwnPasswordsAndRevokedAgentsStay(t *testing.T) {
	t.Parallel()
	a, file := newApplier(t), demoFile(t)
	a.apply(file)
	ctx := t.Context()
	if err := postgres.SetPasswordHash(ctx, a.db.Pool, "hq", account.HashPassword("a password of one's own"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := a.db.Pool.Exec(ctx, `update agent_credential set revoked_at = now() where username = $1`, "agent-jamsil"); err != nil {
		t.Fatal(err)
	}
	if plan := a.apply(file); plan != "no changes\n" {
		t.Errorf("applied again: %s", plan)
	}
	if err := postgres.SetPasswordHash(ctx, a.db.Pool, "gangnam-manager", account.HashPassword("still demo"), true); err != nil {
		t.Fatal(err)
	}
	if plan := a.apply(file); plan != "~ administrator gangnam-manager: demo password\n" {
		t.Errorf("a demo password that differs: %s", plan)
	}
}
