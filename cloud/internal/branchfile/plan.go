package branchfile

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

// Plan is the difference between the database and a file.
type Plan struct{ Changes []Change }

// A Change is one line of a plan.
type Change struct {
	Sign string // "+" added, "~" changed, "-" disabled
	Text string // describes the change; never a secret

	do func(*postgres.BranchBatch) error
}

// String formats the plan, one line per change.
func (p Plan) String() string {
	if len(p.Changes) == 0 {
		return "no changes\n"
	}
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s %s\n", c.Sign, c.Text)
	}
	return b.String()
}

// planner compares a file with the database.
type planner struct {
	name string // of the file, for problems
	file File
	keys *seal.Keyring

	branches       map[string]postgres.BranchState
	agents         map[string]postgres.AgentState
	administrators map[string]booking.Administrator
	upcoming       map[booking.RoomID]int

	changes  []Change
	problems Problems
}

// MakePlan returns the changes that make the database match a file. It returns [Problems], with name as the name of the
// file, for omitted rooms that have reservations to come.
func MakePlan(ctx context.Context, q postgres.Querier, keys *seal.Keyring, name string, file File, now time.Time) (Plan, error) {
	p := &planner{name: name, file: file, keys: keys}
	if err := p.read(ctx, q, now); err != nil {
		return Plan{}, fmt.Errorf("read branches: %w", err)
	}
	for _, b := range file.Branches {
		if err := p.branch(b); err != nil {
			return Plan{}, err
		}
	}
	for _, a := range file.Administrators {
		if err := p.administrator(a); err != nil {
			return Plan{}, err
		}
	}
	if len(p.problems) > 0 {
		return Plan{}, p.problems
	}
	return Plan{p.changes}, nil
}

func (p *planner) read(ctx context.Context, q postgres.Querier, now time.Time) (err error) {
	var codes, usernames []string
	for _, b := range p.file.Branches {
		codes = append(codes, b.Code)
		for _, a := range b.Agents {
			usernames = append(usernames, a.Username)
		}
	}
	if p.branches, err = postgres.BranchStates(ctx, q, codes); err != nil {
		return err
	}
	if p.agents, err = postgres.AgentStates(ctx, q, usernames); err != nil {
		return err
	}
	all, err := postgres.Administrators(ctx, q)
	if err != nil {
		return err
	}
	p.administrators = map[string]booking.Administrator{}
	for _, a := range all {
		p.administrators[a.LoginID] = a
	}
	p.upcoming, err = postgres.UpcomingReservations(ctx, q, p.disabled(), now)
	return err
}

// disabled returns the rooms in the database that the file disables, or omits although it describes their branch.
func (p *planner) disabled() []booking.RoomID {
	var rooms []booking.RoomID
	for _, b := range p.file.Branches {
		for _, room := range p.branches[b.Code].Rooms {
			i := b.room(room.No)
			if i < 0 || room.Enabled && b.Rooms[i].SetsEnabled && !b.Rooms[i].Enabled {
				rooms = append(rooms, room.ID)
			}
		}
	}
	return rooms
}

// room returns the index of a room of the branch, or -1.
func (b Branch) room(no int) int {
	return slices.IndexFunc(b.Rooms, func(r Room) bool { return r.No == no })
}

func (p *planner) change(sign string, do func(*postgres.BranchBatch) error, format string, args ...any) {
	p.changes = append(p.changes, Change{sign, fmt.Sprintf(format, args...), do})
}

func (p *planner) branch(b Branch) error {
	old, exists := p.branches[b.Code]
	if !b.SetsLocation {
		b.Location = old.Location
	}
	if !b.SetsRefundPolicy {
		b.RefundPolicy = old.RefundPolicy
	}
	if !b.SetsCompensation {
		b.Compensation = old.Compensation
	}
	put := func(batch *postgres.BranchBatch) error { return batch.PutBranch(b.Branch, p.file.Demo) }
	facts := withDemo(b.Branch.Facts(), p.file.Demo)
	if exists {
		for _, difference := range booking.Differences(withDemo(old.Branch.Facts(), old.Demo), facts) {
			p.change("~", put, "branch %s: %s", b.Code, difference)
		}
	} else {
		p.change("+", put, "branch %s: %s", b.Code, booking.Sentence(facts))
	}
	for _, room := range b.Rooms {
		p.room(b, old.Branch, room)
	}
	for _, room := range old.Rooms {
		if b.room(room.No) < 0 {
			p.omit(b, room)
		}
	}
	for _, device := range b.devices() {
		if err := p.pin(b, old, device); err != nil {
			return err
		}
	}
	for _, a := range b.Agents {
		p.agent(b, a)
	}
	return nil
}

func (p *planner) room(b Branch, branch booking.Branch, room Room) {
	old, exists := branch.Room(room.No)
	if exists && !room.SetsEnabled {
		room.Enabled = old.Enabled
	}
	if exists {
		room.Lock, room.TurnoverMinutes = old.Lock, old.TurnoverMinutes
	}
	if exists && !room.SetsPrices {
		room.PriceRules = old.PriceRules
	}
	if exists && old.Lock == booking.LockUnproven && room.Enabled && !old.Enabled {
		p.problems = append(p.problems, Problem{p.name, b.line, 1, fmt.Sprintf(
			"branch %s enables room %d, whose lock is unproven; expected the console to enable it once its door is connected and has a PIN",
			b.Code, room.No)})
	}
	if n := p.upcoming[old.ID]; exists && old.Enabled && !room.Enabled && n > 0 {
		p.problems = append(p.problems, Problem{p.name, b.line, 1, fmt.Sprintf(
			"branch %s disables room %d, which has %d reservations to come; expected it to be enabled until they are over, moved or cancelled",
			b.Code, room.No, n)})
	}
	put := func(batch *postgres.BranchBatch) error {
		batch.PutRoom(b.Code, room.Room)
		if room.SetsPrices {
			batch.PutRoomPrices(b.Code, room.No, room.PriceRules)
		}
		return nil
	}
	if !exists {
		p.change("+", put, "room %s/%d: %s", b.Code, room.No, booking.Sentence(room.Room.Facts()))
		return
	}
	for _, difference := range booking.Differences(old.Facts(), room.Room.Facts()) {
		p.change("~", put, "room %s/%d: %s", b.Code, room.No, difference)
	}
}

// omit disables a room that the file omits. It is not deleted, because past reservations refer to it.
func (p *planner) omit(b Branch, room booking.Room) {
	if n := p.upcoming[room.ID]; n > 0 {
		p.problems = append(p.problems, Problem{p.name, b.line, 1, fmt.Sprintf(
			"branch %s leaves room %d out, which has %d reservations to come; expected it to stay until they are over, moved or cancelled",
			b.Code, room.No, n)})
		return
	}
	if room.Enabled {
		p.change("-", func(batch *postgres.BranchBatch) error {
			batch.DisableRoom(room.ID)
			return nil
		}, "room %s/%d: disabled, not in the file", b.Code, room.No)
	}
}

// devices returns the devices that have a PIN: all front doors together, and each room.
func (b Branch) devices() []string {
	devices := []string{string(protocol.DoorFront)}
	for _, room := range b.Rooms {
		devices = append(devices, protocol.DoorRoom.Device(fmt.Sprint(room.No)))
	}
	return devices
}

func (p *planner) pin(b Branch, old postgres.BranchState, device string) error {
	pin, given := b.PINs[device]
	sealed, exists := old.PINs[device]
	put := func(batch *postgres.BranchBatch) error {
		if !given {
			var err error
			if pin, err = newPIN(); err != nil {
				return err
			}
		}
		batch.PutPIN(b.Code, device, p.keys.Seal(access.PINPurpose, []byte(pin)))
		return nil
	}
	switch {
	case !exists && given:
		p.change("+", put, "pin %s/%s: from the file", b.Code, device)
	case !exists:
		p.change("+", put, "pin %s/%s: generated", b.Code, device)
	case given:
		// A PIN that cannot be decrypted was sealed with a lost key; the file replaces it.
		plain, err := p.keys.Open(access.PINPurpose, sealed)
		if err != nil || subtle.ConstantTimeCompare(plain, []byte(pin)) != 1 {
			p.change("~", put, "pin %s/%s: from the file", b.Code, device)
		}
	}
	return nil
}

// newPIN returns six random digits.
func newPIN() (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%06d", n), nil
}

// agent plans the credential of a demo agent. An agent with a secret of its own, or a revoked one, is not changed.
func (p *planner) agent(b Branch, a Agent) {
	hash := sha256.Sum256([]byte(a.Secret))
	put := func(batch *postgres.BranchBatch) error {
		batch.PutDemoAgent(b.Code, a.Username, hash[:])
		return nil
	}
	old, exists := p.agents[a.Username]
	switch {
	case !exists:
		p.change("+", put, "agent %s: demo secret", a.Username)
	case old.Demo && !old.Revoked && subtle.ConstantTimeCompare(old.SecretHash, hash[:]) != 1:
		p.change("~", put, "agent %s: demo secret", a.Username)
	}
}

// administrator plans a demo administrator. One with a password of its own, or a disabled one, is not changed.
func (p *planner) administrator(a Administrator) error {
	put := func(batch *postgres.BranchBatch) error {
		batch.PutDemoAdministrator(booking.Administrator{
			LoginID: a.LoginID, PasswordHash: account.HashPassword(a.Password), Role: string(a.Role), Branches: notNil(a.Branches),
		})
		return nil
	}
	rights := func(role string, branches []string) string {
		if account.Role(role) == account.HQ {
			return "hq, every branch"
		}
		return role + " of " + strings.Join(slices.Sorted(slices.Values(branches)), ", ")
	}
	old, exists := p.administrators[a.LoginID]
	if !exists {
		p.change("+", put, "administrator %s: %s, demo password", a.LoginID, rights(string(a.Role), a.Branches))
		return nil
	}
	if !old.Demo || !old.DisabledAt.IsZero() {
		return nil
	}
	if was, shall := rights(old.Role, old.Branches), rights(string(a.Role), a.Branches); was != shall {
		p.change("~", put, "administrator %s: %s → %s", a.LoginID, was, shall)
	}
	same, err := account.VerifyPassword(a.Password, old.PasswordHash)
	if err != nil {
		return fmt.Errorf("administrator %s: %w", a.LoginID, err)
	}
	if !same {
		p.change("~", put, "administrator %s: demo password", a.LoginID)
	}
	return nil
}

func notNil(list []string) []string { return append([]string{}, list...) }

func withDemo(facts []booking.Fact, demo bool) []booking.Fact {
	if demo {
		return append(facts, booking.Fact{Name: "demo", Text: "yes"})
	}
	return append(facts, booking.Fact{Name: "demo", Text: "no"})
}
