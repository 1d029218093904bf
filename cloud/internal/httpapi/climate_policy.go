package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// maxUnitName is the longest name of an air conditioner in a policy.
const maxUnitName = 100

type climatePolicyBody struct {
	Room         json.RawMessage `json:"room"` // text, or a number in requests
	Unit         *string         `json:"unit"`
	ArriveOption *string         `json:"arriveOption"`
	LeaveOption  *string         `json:"leaveOption"`
	LeadMinutes  *int            `json:"leadMinutes"`
	LagMinutes   *int            `json:"lagMinutes"`
	Low          *float64        `json:"low"`
	High         *float64        `json:"high"`
	GuestOptions []string        `json:"guestOptions"`
	HourlyCost   *int            `json:"hourlyCost"`
}

// climatePolicyView is a policy with the sensor that judges its commands.
type climatePolicyView struct {
	climatePolicyBody
	Sensor *string `json:"sensor"`
}

// showClimatePolicy serves GET /v2/admin/branches/{branch}/climate-policy.
func (a *API) showClimatePolicy(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branch(r)
	if err != nil {
		return err
	}
	return a.writeClimatePolicy(w, r, branch)
}

func (a *API) writeClimatePolicy(w http.ResponseWriter, r *http.Request, branch booking.Branch) error {
	found, err := a.Climate.Policies(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	options, err := a.Climate.Options(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	list := make([]climatePolicyView, 0, len(found))
	for _, p := range found {
		list = append(list, climatePolicyView{climatePolicyBody{
			json.RawMessage(strconv.Quote(strconv.Itoa(p.RoomNo))), &p.Unit, &p.ArriveOption, &p.LeaveOption, &p.Lead, &p.Lag, &p.Low, &p.High, p.GuestOptions, p.HourlyCost,
		}, p.Sensor})
	}
	type option struct {
		ID   string   `json:"id"`
		Unit string   `json:"unit"`
		Path []string `json:"path"`
	}
	offered := make([]option, 0, len(options))
	for _, o := range options {
		offered = append(offered, option{o.ID, o.Unit, o.Path})
	}
	rooms := make([]string, 0, len(branch.Rooms))
	for _, room := range branch.Rooms {
		rooms = append(rooms, strconv.Itoa(room.No))
	}
	return wire.WriteData(w, map[string]any{"rooms": list, "options": offered, "roomNumbers": rooms})
}

// changeClimatePolicy serves PUT /v2/admin/branches/{branch}/climate-policy. It replaces the policies of all rooms.
func (a *API) changeClimatePolicy(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		Rooms *[]climatePolicyBody `json:"rooms"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Rooms == nil {
		return wire.Missing("rooms")
	}
	policies := make([]climate.Policy, 0, len(*body.Rooms))
	for _, b := range *body.Rooms {
		p, err := b.policy()
		if err != nil {
			return err
		}
		policies = append(policies, p)
	}
	if err := a.Climate.SetPolicies(r.Context(), branch, policies, wire.Principal(r).Actor()); err != nil {
		return err
	}
	return a.writeClimatePolicy(w, r, branch)
}

func (b climatePolicyBody) policy() (p climate.Policy, err error) {
	if len(b.Room) == 0 || string(b.Room) == "null" {
		return p, wire.Missing("room")
	}
	if p.RoomNo, err = strconv.Atoi(strings.Trim(string(b.Room), `"`)); err != nil {
		return p, wire.Malformed("room")
	}
	if _, err = wire.Whole("room", &p.RoomNo, 1, booking.MaxRoomNo); err != nil {
		return p, err
	}
	for _, field := range []struct {
		name  string
		value *string
		to    *string
	}{{"unit", b.Unit, &p.Unit}, {"arriveOption", b.ArriveOption, &p.ArriveOption}, {"leaveOption", b.LeaveOption, &p.LeaveOption}} {
		if *field.to, err = wire.Text(field.name, field.value, maxUnitName); err != nil {
			return p, err
		}
	}
	if p.Lead, err = wire.Whole("leadMinutes", b.LeadMinutes, 0, climate.MaxLeadMinutes); err != nil {
		return p, err
	}
	if b.HourlyCost != nil {
		if _, err := wire.Whole("hourlyCost", b.HourlyCost, 0, climate.MaxHourlyCost); err != nil {
			return p, err
		}
	}
	if p.Lag, err = wire.Whole("lagMinutes", b.LagMinutes, 0, climate.MaxLagMinutes); err != nil {
		return p, err
	}
	switch {
	case b.Low == nil:
		return p, wire.Missing("low")
	case b.High == nil:
		return p, wire.Missing("high")
	case !(*b.Low >= climate.MinCelsius && *b.Low < *b.High && *b.High <= climate.MaxCelsius): // so that a NaN fails
		return p, wire.UnknownValue("low")
	case len(b.GuestOptions) > climate.MaxGuestOptions:
		return p, wire.UnknownValue("guestOptions")
	}
	p.HourlyCost = b.HourlyCost
	p.Low, p.High, p.GuestOptions = *b.Low, *b.High, append([]string{}, b.GuestOptions...)
	return p, nil
}

// guestClimate is the field climate of a key: what the guest may choose, or nil.
type guestClimate struct {
	Options []guestOption `json:"options"`
	Current *string       `json:"current"`
}

type guestOption struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

func (a *API) climateOf(r *http.Request, held booking.Reservation) (*guestClimate, error) {
	offer, err := a.Climate.OfferFor(r.Context(), held)
	if err != nil || offer == nil {
		return nil, err
	}
	view := &guestClimate{Options: []guestOption{}, Current: wire.Nullable(offer.Current)}
	for _, o := range offer.Options {
		view.Options = append(view.Options, guestOption{o.ID, strings.Join(o.Path, " ")})
	}
	return view, nil
}

// chooseClimate serves POST /v2/keys/{key}/climate: {option}.
func (a *API) chooseClimate(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Option *string `json:"option"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	option, err := wire.Text("option", body.Option, maxUnitName)
	if err != nil {
		return err
	}
	key, err := a.Access.Lookup(r.Context(), chi.URLParam(r, "key"))
	if err != nil {
		return err
	}
	if keyState(key, a.Now()) == "after" {
		return access.ErrOutsideWindow
	}
	if err := a.Climate.Choose(r.Context(), key.Reservation, option); err != nil {
		return err
	}
	chosen, err := a.climateOf(r, key.Reservation)
	if err != nil {
		return err
	}
	return wire.WriteData(w, chosen)
}
