package branchfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/protocol"
)

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 16 << 20

// Parse reads a file. It returns its mistakes as [Problems], with name as the name of the file.
func Parse(name string, content []byte) (File, error) {
	r := &reader{file: name, usernames: map[string]int{}}
	if len(content) > MaxSize {
		return File{}, fmt.Errorf("%s is larger than %d MiB", name, MaxSize>>20)
	}
	var document yaml.Node
	if err := yaml.Load(content, &document); err != nil {
		return File{}, syntaxProblem(name, err)
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return File{}, Problems{{name, 1, 1, "the file is empty; expected branches"}}
	}
	root := document.Content[0]
	if r.noAliases(root); len(r.problems) > 0 {
		return File{}, r.sorted()
	}
	file := r.readFile(root)
	if err := r.sorted(); err != nil {
		return File{}, err
	}
	return file, nil
}

// syntaxProblem adds the position to an error of the YAML parser.
func syntaxProblem(name string, err error) error {
	p := Problem{File: name, Line: 1, Column: 1, Text: "not YAML: " + err.Error()}
	if at := new(yaml.LoadError); errors.As(err, &at) {
		p.Text = "not YAML: " + at.Message
		if at.Mark.Line > 0 {
			p.Line, p.Column = at.Mark.Line, max(at.Mark.Column, 1)
		}
	}
	return Problems{p}
}

func (r *reader) readFile(root *yaml.Node) File {
	var (
		file           File
		administrators []*yaml.Node
		codes          = map[string]int{}
	)
	r.mapping(root, "the file",
		optional("demo", func(n *yaml.Node) { file.Demo = r.truth(n, "demo") }),
		required("branches", func(n *yaml.Node) {
			r.list(n, "branches", func(n *yaml.Node) {
				b := r.readBranch(n, file.Demo)
				if line, twice := codes[b.Code]; twice && b.Code != "" {
					r.problem(n, "duplicate branch %s, first in line %d", b.Code, line)
				}
				codes[b.Code] = n.Line
				file.Branches = append(file.Branches, b)
			})
		}),
		optional("administrators", func(n *yaml.Node) {
			if !file.Demo {
				r.problem(n, "administrators; expected only in a file with demo: true, use `yeolda admin add`")
				return
			}
			r.list(n, "administrators", func(n *yaml.Node) { administrators = append(administrators, n) })
		}),
	)
	ids := map[string]int{}
	for _, n := range administrators {
		a := r.readAdministrator(n, codes)
		if line, twice := ids[a.LoginID]; twice && a.LoginID != "" {
			r.problem(n, "duplicate administrator %s, first in line %d", a.LoginID, line)
		}
		ids[a.LoginID] = n.Line
		file.Administrators = append(file.Administrators, a)
	}
	return file
}

func (r *reader) readBranch(n *yaml.Node, demo bool) Branch {
	b := Branch{
		Branch: booking.DefaultBranch(),
		PINs:   map[string]string{},
		line:   n.Line,
	}
	before := len(r.problems)
	r.mapping(n, "a branch",
		required("code", func(n *yaml.Node) {
			if code, ok := r.text(n, "code", 40); ok && !booking.ValidBranchCode(code) {
				r.problem(n, "code is %q; expected letters a-z, digits and hyphens", code)
			} else {
				b.Code = code
			}
		}),
		required("name", func(n *yaml.Node) {
			r.mapping(n, "name",
				required("ko", func(n *yaml.Node) { b.NameKo, _ = r.text(n, "the Korean name", booking.MaxBranchName) }),
				required("en", func(n *yaml.Node) { b.NameEn, _ = r.text(n, "the English name", booking.MaxBranchName) }),
			)
		}),
		optional("address", func(n *yaml.Node) { b.Address, _ = r.text(n, "address", booking.MaxAddress) }),
		optional("location", func(n *yaml.Node) { b.Location, b.SetsLocation = r.readLocation(n), true }),
		optional("phone", func(n *yaml.Node) {
			phone, ok := r.quotedText(n, "phone", booking.MaxPhone)
			if ok {
				r.check(n, booking.CheckPhone(phone))
			}
			b.Phone = phone
		}),
		optional("timeZone", func(n *yaml.Node) {
			name, ok := r.text(n, "timeZone", 60)
			if !ok {
				return
			}
			zone, err := time.LoadLocation(name)
			if err != nil || name == "Local" {
				r.problem(n, "timeZone %q is unknown; expected a name such as Asia/Seoul", name)
				return
			}
			b.Zone = zone
		}),
		optional("horizonDays", func(n *yaml.Node) {
			if days, ok := r.whole(n, "horizonDays", 1, booking.MaxHorizonDays); ok {
				b.Horizon = time.Duration(days) * 24 * time.Hour
			}
		}),
		optional("frontDoors", func(n *yaml.Node) { b.FrontDoors = r.readFrontDoors(n) }),
		optional("doors", func(n *yaml.Node) { b.Keypads = r.readKeypads(n) }),
		optional("hours", func(n *yaml.Node) { r.readHours(n, &b.Schedule) }),
		optional("breaks", func(n *yaml.Node) { r.readBreaks(n, &b.Schedule) }),
		optional("closures", func(n *yaml.Node) { r.readClosures(n, &b.Schedule) }),
		optional("holidays", func(n *yaml.Node) { r.readHolidays(n, &b.Schedule) }),
		optional("refundPolicy", func(n *yaml.Node) { b.RefundPolicy, b.SetsRefundPolicy = r.readRefundPolicy(n), true }),
		optional("compensation", func(n *yaml.Node) { b.Compensation, b.SetsCompensation = r.readCompensation(n), true }),
		required("rooms", func(n *yaml.Node) { b.Rooms = r.readRooms(n, b.PINs) }),
		optional("frontPin", func(n *yaml.Node) { r.readPIN(n, "front", b.PINs) }),
		optional("agents", func(n *yaml.Node) {
			if !demo {
				r.problem(n, "agents; expected only in a file with demo: true, use `yeolda agent enroll`")
				return
			}
			r.list(n, "agents", func(n *yaml.Node) { b.Agents = append(b.Agents, r.readAgent(n, b.Code)) })
		}),
	)
	if len(r.problems) == before {
		r.check(n, b.Branch.Validate())
		r.check(n, b.doors().ValidateDoors())
	}
	return b
}

// check reports a setting that is out of bounds.
func (r *reader) check(n *yaml.Node, err error) {
	bad := new(booking.InvalidError)
	if !errors.As(err, &bad) {
		return
	}
	what := bad.Field
	if bad.Weekday != nil {
		what += " of " + bad.Weekday.String()
	}
	r.problem(n, "%s: %s", what, bad.Problem)
}

func (r *reader) readFrontDoors(n *yaml.Node) []string {
	var doors []string
	r.list(n, "frontDoors", func(n *yaml.Node) {
		device, ok := r.text(n, "a front door", 40)
		if !ok {
			return
		}
		kind, _, err := protocol.ParseDevice(device)
		switch {
		case err != nil || kind != protocol.DoorFront:
			r.problem(n, "front door %q; expected front_1, front_2, …", device)
		case slices.Contains(doors, device):
			r.problem(n, "duplicate front door %s", device)
		default:
			doors = append(doors, device)
		}
	})
	if n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || len(n.Content) > protocol.MaxDoors) {
		r.problem(n, "frontDoors has %d doors; expected 1 to %d", len(n.Content), protocol.MaxDoors)
	}
	return doors
}

// readKeypads reads the doors of a branch that are described one by one. The other doors have a standalone keypad.
func (r *reader) readKeypads(n *yaml.Node) map[string]booking.Keypad {
	var b booking.Branch
	lines := map[string]int{}
	r.list(n, "doors", func(n *yaml.Node) {
		var device, kind string
		r.mapping(n, "a door",
			required("device", func(n *yaml.Node) {
				device, _ = r.text(n, "device", 40)
				if _, _, err := protocol.ParseDevice(device); err != nil {
					r.problem(n, "device %q; expected front_1, room_1, …", device)
				}
			}),
			required("keypad", func(n *yaml.Node) {
				kind, _ = r.text(n, "keypad", 20)
				if !booking.Keypad(kind).Valid() {
					r.problem(n, "keypad %q; expected agent, standalone or none", kind)
				}
			}),
		)
		if line, twice := lines[device]; twice {
			r.problem(n, "duplicate door %s, first in line %d", device, line)
		}
		lines[device] = n.Line
		b.Keypads = b.WithKeypad(device, booking.Keypad(kind))
	})
	if len(b.Keypads) == 0 {
		return nil
	}
	return b.Keypads
}

// doors returns the branch with the rooms of the file.
func (b Branch) doors() booking.Branch {
	full := b.Branch
	for _, room := range b.Rooms {
		full.Rooms = append(full.Rooms, room.Room)
	}
	return full
}

func (r *reader) readRooms(n *yaml.Node, pins map[string]string) []Room {
	var rooms []Room
	lines := map[int]int{}
	r.list(n, "rooms", func(n *yaml.Node) {
		room := r.readRoom(n, pins)
		if line, twice := lines[room.No]; twice && room.No != 0 {
			r.problem(n, "duplicate room %d, first in line %d", room.No, line)
		}
		lines[room.No] = n.Line
		rooms = append(rooms, room)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.problem(n, "rooms is empty; expected at least one")
	}
	slices.SortFunc(rooms, func(a, b Room) int { return a.No - b.No })
	return rooms
}

func (r *reader) readRoom(n *yaml.Node, pins map[string]string) Room {
	room := Room{Room: booking.Room{Enabled: true, Lock: booking.LockFitted}}
	r.mapping(n, "a room",
		required("no", func(n *yaml.Node) { room.No, _ = r.whole(n, "no", 1, booking.MaxRoomNo) }),
		optional("machine", func(n *yaml.Node) { room.Machine, _ = r.text(n, "machine", booking.MaxMachine) }),
		optional("grade", func(n *yaml.Node) {
			grade, ok := r.text(n, "grade", 20)
			if ok && !booking.Grade(grade).Valid() {
				r.problem(n, "grade %q; expected Stella, Crystal, Superb, Premium, Gold, Standard or Normal", grade)
			}
			room.Grade = booking.Grade(grade)
		}),
		optional("enabled", func(n *yaml.Node) { room.Enabled, room.SetsEnabled = r.truth(n, "enabled"), true }),
		optional("price", func(n *yaml.Node) {
			r.mapping(n, "price", r.tiers(&room.Price)...)
		}),
		optional("prices", func(n *yaml.Node) { room.PriceRules, room.SetsPrices = r.readPriceRules(n), true }),
		optional("pin", func(n *yaml.Node) { r.readPIN(n, protocol.DoorRoom.Device(fmt.Sprint(room.No)), pins) }),
	)
	return room
}

var pinForm = regexp.MustCompile(`^[0-9]{4,12}$`)

func (r *reader) readPIN(n *yaml.Node, device string, pins map[string]string) {
	pin, ok := r.quotedText(n, "a PIN", 12)
	if ok && !pinForm.MatchString(pin) {
		r.problem(n, "a PIN; expected 4 to 12 digits in quotes")
		return
	}
	if ok {
		pins[device] = pin
	}
}

func (r *reader) readAgent(n *yaml.Node, branch string) Agent {
	var a Agent
	r.mapping(n, "an agent",
		required("username", func(n *yaml.Node) {
			name, ok := r.text(n, "username", 64)
			if ok && name != "agent-"+branch && !strings.HasPrefix(name, "agent-"+branch+"-") {
				r.problem(n, "username %q; expected agent-%s", name, branch)
			}
			if line, twice := r.usernames[name]; ok && twice {
				r.problem(n, "duplicate agent %s, first in line %d", name, line)
			}
			r.usernames[name] = n.Line
			a.Username = name
		}),
		required("secret", func(n *yaml.Node) { a.Secret, _ = r.text(n, "secret", 200) }),
	)
	return a
}

func (r *reader) readAdministrator(n *yaml.Node, codes map[string]int) Administrator {
	var a Administrator
	r.mapping(n, "an administrator",
		required("id", func(n *yaml.Node) { a.LoginID, _ = r.text(n, "id", 40) }),
		required("password", func(n *yaml.Node) { a.Password, _ = r.quotedText(n, "password", 200) }),
		required("role", func(n *yaml.Node) {
			role, _ := r.text(n, "role", 20)
			a.Role = account.Role(role)
		}),
		optional("branches", func(n *yaml.Node) {
			r.list(n, "branches", func(n *yaml.Node) {
				code, ok := r.text(n, "a branch", 40)
				if _, known := codes[code]; ok && !known {
					r.problem(n, "branch %q is not in this file", code)
				}
				a.Branches = append(a.Branches, code)
			})
		}),
	)
	if a.LoginID != "" && a.Role != "" {
		check := account.NewAdministrator{LoginID: a.LoginID, Role: a.Role, Branches: a.Branches}
		if err := check.Check(); err != nil {
			r.problem(n, "%s", strings.TrimPrefix(err.Error(), "account: "))
		}
	}
	slices.Sort(a.Branches)
	a.Branches = slices.Compact(a.Branches)
	return a
}
