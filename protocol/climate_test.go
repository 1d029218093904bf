package protocol

import (
	"encoding/json"
	"testing"
)

func TestOptionTree(t *testing.T) {
	t.Parallel()
	options := []Option{{Name: "전원 끄기"}, {Name: "냉방", Children: []Option{{Name: "24"}}}}
	id := func(branch, unit string, path ...string) string { return LeafID(branch, unit, path...) }
	for name, c := range map[string]struct {
		units []AirConditioner
		want  string
	}{
		"no unit": {nil, `[]`},
		"one unit": {[]AirConditioner{{Name: "main", Options: options}},
			`[{"name":"전원 끄기","airconditioner_id":"` + id("gangnam", "main", "전원 끄기") + `","children":null},` +
				`{"name":"냉방","airconditioner_id":null,"children":[{"name":"24","airconditioner_id":"` + id("gangnam", "main", "냉방", "24") + `","children":null}]}]`},
		"two units": {[]AirConditioner{{Name: "lobby", Options: options[:1]}, {Name: "hall", Options: options[:1]}},
			`[{"name":"lobby","airconditioner_id":null,"children":[{"name":"전원 끄기","airconditioner_id":"` + id("gangnam", "lobby", "전원 끄기") + `","children":null}]},` +
				`{"name":"hall","airconditioner_id":null,"children":[{"name":"전원 끄기","airconditioner_id":"` + id("gangnam", "hall", "전원 끄기") + `","children":null}]}]`},
	} {
		got, err := json.Marshal(OptionTree("gangnam", c.units))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestLeafIDIsStable: administrators' clients keep ids. A change here breaks them all.
func TestLeafIDIsStable(t *testing.T) {
	t.Parallel()
	if got, want := LeafID("gangnam", "main", "cool", "24"), "fdsq3dluz67qntmbfa7p"; got != want {
		t.Errorf("LeafID = %s, want %s", got, want)
	}
	if LeafID("a", "b", "cd") == LeafID("a", "b", "c", "d") || LeafID("a", "bc") == LeafID("ab", "c") {
		t.Error("the border between names is not part of the id")
	}
}

// A sensor that measured nothing did not measure zero.
func TestReadingWithoutAValue(t *testing.T) {
	t.Parallel()
	for reading, ok := range map[string]bool{
		`{"location":"로비","celsius":0,"relativeHumidity":0}`:    true,
		`{"location":"로비","celsius":9}`:                         false,
		`{"location":"로비","relativeHumidity":9}`:                false,
		`{"location":"로비","celsius":null,"relativeHumidity":9}`: false,
	} {
		for _, decoded := range []error{
			decodeError[SensorsReadings](`{"requestId":"11111111-2222-4333-8444-555555555555","readings":[` + reading + `]}`),
			decodeError[Telemetry](`{"at":"2026-11-21T12:00:00Z","readings":[` + reading + `]}`),
		} {
			if (decoded == nil) != ok {
				t.Errorf("%s: %v", reading, decoded)
			}
		}
	}
}

func decodeError[M Message](payload string) error {
	_, err := Decode[M]([]byte(payload))
	return err
}
