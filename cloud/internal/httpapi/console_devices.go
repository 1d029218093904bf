package httpapi

import (
	"fmt"
	"image/color"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"
	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// branchInScope returns the branch of the path, if the administrator may use it.
func (a *API) branchInScope(r *http.Request) (booking.Branch, error) {
	code := chi.URLParam(r, "branch")
	if err := wire.Scope(r, code); err != nil {
		return booking.Branch{}, err
	}
	return a.DB.Branch(r.Context(), code)
}

// listDoors is GET /v2/admin/branches/{branch}/doors: the doors, whether they stand open, and what happened there last.
func (a *API) listDoors(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	agent, err := postgres.AgentOf(r.Context(), a.DB.Pool, branch.ID)
	if err != nil {
		return err
	}
	open, err := postgres.DoorContacts(r.Context(), a.DB.Pool, branch.ID, a.Now())
	if err != nil {
		return err
	}
	happened, err := postgres.DoorHistory(r.Context(), a.DB.Pool, branch.ID, 50)
	if err != nil {
		return err
	}
	type door struct {
		Device string  `json:"device"`
		Kind   string  `json:"kind"`
		RoomNo *string `json:"roomNo"`
		Leaf   *string `json:"leaf"`
		Sense  bool    `json:"sense"`
	}
	doors := []door{}
	add := func(device, kind, room string) {
		d := door{Device: device, Kind: kind, RoomNo: wire.Nullable(room)}
		for _, fitted := range agent.Inventory.Doors {
			if fitted.Device != device {
				continue
			}
			d.Sense = fitted.Sense
			if is, known := open[device]; known && fitted.Contact {
				d.Leaf = wire.Nullable(map[bool]string{true: "open", false: "closed"}[is])
			}
		}
		doors = append(doors, d)
	}
	for _, device := range branch.FrontDoors {
		add(device, "front", "")
	}
	for _, room := range branch.Rooms {
		no := strconv.Itoa(room.No)
		add("room_"+no, "room", no)
	}
	type event struct {
		At            string  `json:"at"`
		Device        string  `json:"device"`
		Kind          string  `json:"kind"`
		By            *string `json:"by"`
		ReservationID *string `json:"reservationId"`
		LatencyMs     *int64  `json:"latencyMs"`
		Detail        *string `json:"detail"`
	}
	events := make([]event, 0, len(happened))
	for _, e := range happened {
		item := event{At: *wire.Instant(e.At), Device: e.Device, Kind: e.Kind, By: wire.Nullable(e.By), LatencyMs: e.LatencyMs, Detail: wire.Nullable(e.Detail)}
		if e.Reservation != nil {
			item.ReservationID = wire.Nullable(wire.ReservationID(*e.Reservation))
		}
		events = append(events, item)
	}
	return wire.WriteData(w, struct {
		Online bool    `json:"online"`
		SeenAt *string `json:"seenAt"`
		Doors  []door  `json:"doors"`
		Events []event `json:"events"`
	}{agent.Online, wire.Instant(agent.SeenAt), doors, events})
}

type wireReading struct {
	At       string  `json:"at"`
	Celsius  float64 `json:"celsius"`
	Humidity float64 `json:"humidity"`
}

func toWireReading(r postgres.SensorReading) wireReading {
	return wireReading{*wire.Instant(r.At), r.Celsius, r.Humidity}
}

// showClimate is GET /v2/admin/branches/{branch}/climate: the last reading of each sensor and the last commands.
func (a *API) showClimate(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	agent, err := postgres.AgentOf(r.Context(), a.DB.Pool, branch.ID)
	if err != nil {
		return err
	}
	latest, err := postgres.LatestReadings(r.Context(), a.DB.Pool, branch.ID, agent.Inventory.Sensors)
	if err != nil {
		return err
	}
	sent, err := postgres.ClimateCommands(r.Context(), a.DB.Pool, branch.ID, 20)
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
	for _, location := range agent.Inventory.Sensors {
		item := sensor{Location: location}
		if reading, ok := latest[location]; ok {
			wire := toWireReading(reading)
			item.Latest = &wire
		}
		sensors = append(sensors, item)
	}
	for _, c := range sent {
		commands = append(commands, command{*wire.Instant(c.At), c.Unit, c.Path, c.By, c.Outcome})
	}
	return wire.WriteData(w, struct {
		Online   bool      `json:"online"`
		Sensors  []sensor  `json:"sensors"`
		Commands []command `json:"commands"`
	}{agent.Online, sensors, commands})
}

// sensorHistory is GET /v2/admin/branches/{branch}/sensors?location=&hours=: about 300 averages over the time asked for.
func (a *API) sensorHistory(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
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
	span := time.Duration(hours) * time.Hour
	step := max(time.Minute, (span / 288).Truncate(time.Minute))
	found, err := postgres.Readings(r.Context(), a.DB.Pool, branch.ID, location, a.Now().Add(-span), step)
	if err != nil {
		return err
	}
	readings := make([]wireReading, 0, len(found))
	for _, reading := range found {
		readings = append(readings, toWireReading(reading))
	}
	return wire.WriteData(w, map[string]any{"readings": readings})
}

// showDevices is GET /v2/admin/branches/{branch}/devices: the agent, what hangs on it, and the credentials for it.
func (a *API) showDevices(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	agent, err := postgres.AgentOf(r.Context(), a.DB.Pool, branch.ID)
	if err != nil {
		return err
	}
	all, err := postgres.AgentCredentials(r.Context(), a.DB.Pool)
	if err != nil {
		return err
	}
	type credential struct {
		Username  string  `json:"username"`
		Demo      bool    `json:"demo"`
		CreatedAt string  `json:"createdAt"`
		RevokedAt *string `json:"revokedAt"`
	}
	credentials := []credential{}
	for _, c := range all {
		if c.Branch == branch.Code {
			credentials = append(credentials, credential{c.Username, c.Demo, *wire.Instant(c.CreatedAt), wire.Instant(c.RevokedAt)})
		}
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

// enrollAgent is POST /v2/admin/branches/{branch}/agents: the command that makes one machine the branch's agent. The
// token in it is in this answer and nowhere else; the picture is for whoever is at the machine with a phone.
func (a *API) enrollAgent(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	now := a.Now()
	token, err := enroll.Offer(r.Context(), a.DB.Pool, branch.Code, wire.Principal(r).Actor(), a.GrantPublicKeys, now)
	if err != nil {
		return err
	}
	command := enroll.Command(a.Site.PublicURL, token)
	picture, err := qrRows(command)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return a.done(w, r, branch.Code, "agent.offer", "", nil, struct {
		Command   string `json:"command"`
		ExpiresAt string `json:"expiresAt"`
		QR        string `json:"qr"`
	}{command, *wire.Instant(now.Add(enroll.TokenLife)), picture})
}

// qrRows returns a QR code as lines of 0 and 1.
func qrRows(text string) (string, error) {
	code, err := qr.Encode(text, qr.M, qr.Unicode)
	if err != nil {
		return "", fmt.Errorf("encode a QR code: %w", err)
	}
	rows := make([]string, code.Bounds().Dy())
	for y := range rows {
		row := make([]byte, code.Bounds().Dx())
		for x := range row {
			row[x] = '0'
			if code.At(x, y) == color.Black {
				row[x] = '1'
			}
		}
		rows[y] = string(row)
	}
	return strings.Join(rows, "\n"), nil
}

// revokeAgent is DELETE /v2/admin/agents/{username}.
func (a *API) revokeAgent(w http.ResponseWriter, r *http.Request) error {
	username := chi.URLParam(r, "username")
	branch, err := postgres.BranchOfAgent(r.Context(), a.DB.Pool, username)
	if err != nil {
		return err
	}
	if err := wire.Scope(r, branch); err != nil {
		return err
	}
	if err := postgres.RevokeAgent(r.Context(), a.DB.Pool, username); err != nil {
		return err
	}
	return a.done(w, r, branch, "agent.revoke", username, nil)
}
