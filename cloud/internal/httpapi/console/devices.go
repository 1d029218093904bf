package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/protocol"
)

// pinDevice is the device of a door's PIN: all front doors have the same one.
func pinDevice(device string) string {
	if kind, _, err := protocol.ParseDevice(device); err == nil && kind == protocol.DoorFront {
		return string(protocol.DoorFront)
	}
	return device
}

// wireDoor is a door with its keypad and its leaf.
type wireDoor struct {
	Device string      `json:"device"`
	Kind   string      `json:"kind"`
	RoomNo *string     `json:"roomNo"`
	Keypad string      `json:"keypad"`
	Leaf   *string     `json:"leaf"`
	Sense  bool        `json:"sense"`
	Fitted bool        `json:"fitted"`
	PIN    wireDoorPIN `json:"pin"`
}

type wireDoorPIN struct {
	Kind               string  `json:"kind"` // agent: passes and one-time codes; standalone: a PIN that staff change at the keypad; none
	ChangedAt          *string `json:"changedAt"`
	RevealsSinceChange int     `json:"revealsSinceChange"`
}

// wireDoors encodes the front doors of a branch, then those of its rooms.
func wireDoors(branch booking.Branch, state backoffice.Doors) []wireDoor {
	doors := []wireDoor{}
	add := func(device, kind, room string) {
		keypad := branch.Keypad(device)
		d := wireDoor{Device: device, Kind: kind, RoomNo: wire.Nullable(room), Keypad: string(keypad), PIN: wireDoorPIN{Kind: string(keypad)}}
		if known, ok := state.PINs[pinDevice(device)]; keypad == booking.KeypadStandalone && ok {
			d.PIN.ChangedAt, d.PIN.RevealsSinceChange = wire.Instant(known.ChangedAt), known.Reveals
		} else if keypad == booking.KeypadStandalone {
			d.PIN.Kind = "none"
		}
		if fitted, ok := backoffice.FittedDoor(state.Agent, device); ok {
			d.Fitted, d.Sense = true, fitted.Sense
			if open, known := state.Open[device]; known && fitted.Contact {
				d.Leaf = wire.Nullable(map[bool]string{true: "open", false: "closed"}[open])
			}
		}
		doors = append(doors, d)
	}
	for _, device := range branch.FrontDoors {
		add(device, "front", "")
	}
	for _, room := range branch.Rooms {
		add(room.Device(), "room", strconv.Itoa(room.No))
	}
	return doors
}

type wireDoorEvent struct {
	At            string  `json:"at"`
	Device        string  `json:"device"`
	Kind          string  `json:"kind"`
	By            *string `json:"by"`
	ReservationID *string `json:"reservationId"`
	LatencyMs     *int64  `json:"latencyMs"`
	Detail        *string `json:"detail"`
	Companion     *string `json:"companion"`
	Source        *string `json:"source"` // remote, pin, code; null for what a door did
}

func wireDoorEvents(state backoffice.Doors) []wireDoorEvent {
	events := make([]wireDoorEvent, 0, len(state.Events))
	for _, e := range state.Events {
		item := wireDoorEvent{At: *wire.Instant(e.At), Device: e.Device, Kind: e.Kind, By: wire.Nullable(e.By), LatencyMs: e.LatencyMs, Detail: wire.Nullable(e.Detail),
			Companion: wire.Nullable(e.Companion), Source: wire.Nullable(e.Source)}
		if e.Reservation != nil {
			item.ReservationID = wire.Nullable(wire.ReservationID(*e.Reservation))
		}
		events = append(events, item)
	}
	return events
}

// ListDoors serves GET /v2/admin/branches/{branch}/doors: the doors, their contacts and their latest events.
func (c *Console) ListDoors(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	state, err := c.Backoffice.Doors(r.Context(), branch)
	if err != nil {
		return err
	}
	agents, err := c.Backoffice.PassAgents(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Online bool            `json:"online"`
		SeenAt *string         `json:"seenAt"`
		Doors  []wireDoor      `json:"doors"`
		Events []wireDoorEvent `json:"events"`
		Passes []wirePassAgent `json:"passes"`
	}{state.Agent.Online, wire.Instant(state.Agent.SeenAt), wireDoors(branch, state), wireDoorEvents(state), wirePassAgents(agents)})
}

type wireReading struct {
	At       string  `json:"at"`
	Celsius  float64 `json:"celsius"`
	Humidity float64 `json:"humidity"`
}

// ShowClimate serves GET /v2/admin/branches/{branch}/climate: the latest reading of each sensor and the latest commands.
func (c *Console) ShowClimate(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	state, err := c.Backoffice.Climate(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	type sensor struct {
		Location string       `json:"location"`
		Latest   *wireReading `json:"latest"`
	}
	type command struct {
		At      string   `json:"at"`
		Unit    string   `json:"unit"`
		Path    []string `json:"path"`
		By      string   `json:"by"`
		Outcome string   `json:"outcome"`
	}
	sensors, commands := []sensor{}, []command{}
	for _, location := range state.Agent.Inventory.Sensors {
		item := sensor{Location: location}
		if m, ok := state.Latest[location]; ok {
			item.Latest = &wireReading{*wire.Instant(m.At), m.Celsius, m.Humidity}
		}
		sensors = append(sensors, item)
	}
	for _, sent := range state.Commands {
		commands = append(commands, command{*wire.Instant(sent.At), sent.Unit, sent.Path, sent.By, sent.Outcome})
	}
	type intent struct {
		Room        string    `json:"room"`
		Reservation string    `json:"reservation"`
		Edge        string    `json:"edge"`
		At          time.Time `json:"at"`
		State       string    `json:"state"`
		Path        []string  `json:"path"`
		Attempts    int       `json:"attempts"`
		SentAt      *string   `json:"sentAt"`
		Before      *float64  `json:"before"`
		Seen        *float64  `json:"seen"`
	}
	intents := make([]intent, 0, len(state.Intents))
	for _, i := range state.Intents {
		intents = append(intents, intent{strconv.Itoa(i.RoomNo), strconv.FormatInt(i.Reservation, 10), i.Edge, i.At, i.State, i.Path, i.Attempts, moment(i.SentAt), i.Before, i.Seen})
	}
	return wire.WriteData(w, struct {
		Online   bool      `json:"online"`
		Sensors  []sensor  `json:"sensors"`
		Commands []command `json:"commands"`
		Intents  []intent  `json:"intents"`
	}{state.Agent.Online, sensors, commands, intents})
}

// SensorHistory serves GET /v2/admin/branches/{branch}/sensors?location=&hours=: about 300 averages over that time.
func (c *Console) SensorHistory(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	location, err := wire.Query(r, "location")
	if err != nil {
		return err
	}
	hours, err := wire.QueryInt(r, "hours", 1, 2160)
	if err != nil {
		return err
	}
	found, err := c.Backoffice.Readings(r.Context(), branch.ID, location, time.Duration(hours)*time.Hour)
	if err != nil {
		return err
	}
	readings := make([]wireReading, 0, len(found))
	for _, m := range found {
		readings = append(readings, wireReading{*wire.Instant(m.At), m.Celsius, m.Humidity})
	}
	return wire.WriteData(w, map[string]any{"readings": readings})
}

// ShowDevices serves GET /v2/admin/branches/{branch}/devices: the agent, its hardware, and the credentials of the branch.
func (c *Console) ShowDevices(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	agent, err := c.Backoffice.Agent(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	issued, err := c.Backoffice.Credentials(r.Context(), branch.Code)
	if err != nil {
		return err
	}
	credentials := []credential{}
	for _, i := range issued {
		credentials = append(credentials, credential{
			Username: i.Username, Demo: i.Demo, State: i.State(), Online: i.Online, SeenAt: wire.Instant(i.SeenAt), Version: wire.Nullable(i.Version),
			Takeovers: i.Takeovers, TakenOverAt: wire.Instant(i.TakenOverAt), KeyPair: i.KeyPair, Rotating: i.Rotating, RotatedAt: wire.Instant(i.RotatedAt), CreatedAt: *wire.Instant(i.CreatedAt), RevokedAt: wire.Instant(i.RevokedAt),
		})
	}
	type test struct {
		Name   string  `json:"name"`
		OK     bool    `json:"ok"`
		Detail *string `json:"detail"`
	}
	tests := []test{}
	for _, t := range agent.SelfTest {
		tests = append(tests, test{t.Name, t.OK, wire.Nullable(t.Detail)})
	}
	units := []string{}
	for _, unit := range agent.Inventory.AirConditioners {
		units = append(units, unit.Name)
	}
	var offset *int64
	if agent.ClockOffset != nil {
		ms := agent.ClockOffset.Milliseconds()
		offset = &ms
	}
	return wire.WriteData(w, struct {
		Online          bool            `json:"online"`
		SeenAt          *string         `json:"seenAt"`
		StartedAt       *string         `json:"startedAt"`
		Version         *string         `json:"version"`
		ClockOffsetMs   *int64          `json:"clockOffsetMs"`
		SelfTest        []test          `json:"selfTest"`
		Doors           []protocol.Door `json:"doors"`
		AirConditioners []string        `json:"airConditioners"`
		Sensors         []string        `json:"sensors"`
		Credentials     []credential    `json:"credentials"`
	}{
		agent.Online, wire.Instant(agent.SeenAt), wire.Instant(agent.StartedAt), wire.Nullable(agent.Version), offset, tests,
		append([]protocol.Door{}, agent.Inventory.Doors...), units, append([]string{}, agent.Inventory.Sensors...), credentials,
	})
}

// EnrollAgent serves POST /v2/admin/branches/{branch}/agents: the command that enrolls a machine as the branch's agent. Its
// token is in this answer only; the QR code lets a phone carry it to the machine.
func (c *Console) EnrollAgent(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		Replaces *string `json:"replaces"`
	}
	if err := wire.DecodeOptional(r, &body); err != nil {
		return err
	}
	replaces, err := wire.OptionalText("replaces", body.Replaces, 100)
	if err != nil {
		return err
	}
	token, expires, err := c.Backoffice.OfferAgent(r.Context(), branch.Code, replaces, actor(r))
	if err != nil {
		return err
	}
	command := enroll.Command(c.PublicURL, token)
	picture, err := wire.QR(command)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Command   string `json:"command"`
		ExpiresAt string `json:"expiresAt"`
		QR        string `json:"qr"`
	}{command, *wire.Instant(expires), picture})
}

// credential is a credential of a branch's agents.
type credential struct {
	Username    string  `json:"username"`
	Demo        bool    `json:"demo"`
	State       string  `json:"state"` // active, standby, revoked
	Online      bool    `json:"online"`
	SeenAt      *string `json:"seenAt"`
	Version     *string `json:"version"`
	Takeovers   int     `json:"takeovers"`
	TakenOverAt *string `json:"takenOverAt"`
	KeyPair     bool    `json:"keyPair"`
	Rotating    bool    `json:"rotating"`
	RotatedAt   *string `json:"rotatedAt"`
	CreatedAt   string  `json:"createdAt"`
	RevokedAt   *string `json:"revokedAt"`
}

// agent returns the user name in the path and its branch, which must be in the scope of the request.
func (c *Console) agent(r *http.Request) (username, branch string, err error) {
	username = chi.URLParam(r, "username")
	if branch, err = c.Backoffice.BranchOfAgent(r.Context(), username); err != nil {
		return username, branch, err
	}
	return username, branch, wire.Scope(r, branch)
}

// changeAgent makes a change of the agent in the path.
func (c *Console) changeAgent(w http.ResponseWriter, r *http.Request, change func(ctx context.Context, username, by string) error) error {
	username, _, err := c.agent(r)
	if err != nil {
		return err
	}
	if err := change(r.Context(), username, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// ActivateAgent serves POST /v2/admin/agents/{username}/activate.
func (c *Console) ActivateAgent(w http.ResponseWriter, r *http.Request) error {
	return c.changeAgent(w, r, c.Devices.Activate)
}

// RotateAgent serves POST /v2/admin/agents/{username}/rotate.
func (c *Console) RotateAgent(w http.ResponseWriter, r *http.Request) error {
	return c.changeAgent(w, r, c.Devices.RotateCredential)
}

// RevokeAgent serves DELETE /v2/admin/agents/{username}.
func (c *Console) RevokeAgent(w http.ResponseWriter, r *http.Request) error {
	username, branch, err := c.agent(r)
	if err != nil {
		return err
	}
	if err := c.Backoffice.RevokeAgent(r.Context(), branch, username, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
