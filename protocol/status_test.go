package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func unitsOfOneModel(n, options int) (units []AirConditioner) {
	for i := range n {
		u := AirConditioner{Name: fmt.Sprintf("room %d", i+1)}
		for j := range options {
			u.Options = append(u.Options, Option{Name: fmt.Sprint(j)})
		}
		units = append(units, u)
	}
	return units
}

// TestOptionsAreSentOnce encodes units of one model whose options do not fit into a status for each of them. Decode gives every unit its
// options. A cloud that does not know optionsOf finds the others without options, which is valid.
func TestOptionsAreSentOnce(t *testing.T) {
	t.Parallel()
	for units, shared := range map[int]bool{3: false, 12: true, 32: true} {
		v := Inventory{Doors: []Door{}, Sensors: []string{}, AirConditioners: unitsOfOneModel(units, 900)}
		want := unitsOfOneModel(units, 900)
		payload, err := EncodeStatus(Status{State: Online, BootID: "boot", Inventory: &v})
		if err != nil {
			t.Errorf("%d units: %v", units, err)
			continue
		}
		if got := strings.Contains(string(payload), "optionsOf"); got != shared {
			t.Errorf("%d units: options are sent once: %v, want %v", units, got, shared)
		}
		s, err := Decode[Status](payload)
		if err != nil || !reflect.DeepEqual(s.Inventory.AirConditioners, want) || !reflect.DeepEqual(v.AirConditioners, want) {
			t.Errorf("%d units: %v, or other options after decoding", units, err)
		}
		var old struct {
			Inventory struct {
				AirConditioners []struct {
					Name    string   `json:"name"`
					Options []Option `json:"options"`
				} `json:"airConditioners"`
			} `json:"inventory"`
		}
		if err := json.Unmarshal(payload, &old); err != nil {
			t.Fatal(err)
		}
		for i, u := range old.Inventory.AirConditioners {
			if u.Name != want[i].Name || u.Options == nil || (len(u.Options) == 0) != (shared && i > 0) {
				t.Errorf("%d units: an earlier cloud reads %q with %d options", units, u.Name, len(u.Options))
			}
		}
	}
	v := Inventory{AirConditioners: unitsOfOneModel(40, 900)}
	if _, err := EncodeStatus(Status{State: Online, BootID: "boot", Inventory: &v}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("36,000 options: got %v, want ErrTooLarge", err)
	}
}

func TestOptionsOfAnotherUnit(t *testing.T) {
	t.Parallel()
	for units, ok := range map[string]bool{
		`{"name":"a","options":[{"name":"off"}]},{"name":"b","options":[],"optionsOf":"a"}`:                                           true,
		`{"name":"b","options":[],"optionsOf":"a"},{"name":"a","options":[{"name":"off"}]}`:                                           false,
		`{"name":"a","options":[],"optionsOf":"a"}`:                                                                                   false,
		`{"name":"a","options":[{"name":"off"}]},{"name":"b","options":[{"name":"on"}],"optionsOf":"a"}`:                              false,
		`{"name":"a","options":[{"name":"off"}]},{"name":"b","options":[],"optionsOf":"a"},{"name":"c","options":[],"optionsOf":"c"}`: false,
	} {
		payload := `{"state":"online","bootId":"boot","connection":1,"inventory":{"doors":[],"sensors":[],"airConditioners":[` + units + `]}}`
		if s, err := Decode[Status]([]byte(payload)); (err == nil) != ok || ok && (len(s.Inventory.AirConditioners[1].Options) != 1 || s.Inventory.AirConditioners[1].OptionsOf != "") {
			t.Errorf("%s: got %v", units, err)
		}
	}
}
