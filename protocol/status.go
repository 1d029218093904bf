package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// maxOptionNodes bounds the options of all units of an agent, repeated ones included, because the cloud stores each of them.
const maxOptionNodes = 32 << 10

// EncodeStatus encodes a status. If it is too large, the options of units of the same model are sent once. A cloud of an earlier version
// does not read that, so a status that fits is sent as a whole.
func EncodeStatus(m Status) ([]byte, error) {
	payload, err := Encode(m)
	if errors.Is(err, ErrTooLarge) && m.Inventory != nil {
		shared := m.Inventory.shareOptions()
		m.Inventory = &shared
		payload, err = Encode(m)
	}
	return payload, err
}

// shareOptions returns the inventory with each option tree once.
func (v Inventory) shareOptions() Inventory {
	v.AirConditioners = slices.Clone(v.AirConditioners)
	for i, u := range v.AirConditioners {
		same := func(e AirConditioner) bool { return e.OptionsOf == "" && reflect.DeepEqual(e.Options, u.Options) }
		if at := slices.IndexFunc(v.AirConditioners[:i], same); at >= 0 && len(u.Options) > 0 {
			v.AirConditioners[i] = AirConditioner{Name: u.Name, Options: []Option{}, OptionsOf: v.AirConditioners[at].Name}
		}
	}
	return v
}

// UnmarshalJSON implements json.Unmarshaler. Every unit gets its own options.
func (v *Inventory) UnmarshalJSON(data []byte) error {
	type plain Inventory
	if err := json.Unmarshal(data, (*plain)(v)); err != nil {
		return err
	}
	for i, u := range v.AirConditioners {
		if u.OptionsOf == "" {
			continue
		}
		options, err := v.optionsOf(i)
		if err != nil {
			return err
		}
		v.AirConditioners[i] = AirConditioner{Name: u.Name, Options: options}
	}
	return nil
}

// optionsOf returns the options of a unit: its own, or those of the earlier unit that it names.
func (v Inventory) optionsOf(i int) ([]Option, error) {
	u := v.AirConditioners[i]
	if u.OptionsOf == "" {
		return u.Options, nil
	}
	at := slices.IndexFunc(v.AirConditioners[:i], func(e AirConditioner) bool { return e.Name == u.OptionsOf && e.OptionsOf == "" })
	if at < 0 || len(u.Options) > 0 {
		return nil, fmt.Errorf("air conditioner %q: optionsOf %q names no earlier unit, or there are options, too", u.Name, u.OptionsOf)
	}
	return v.AirConditioners[at].Options, nil
}

// checkAllOptions checks the number of options of all units.
func (v Inventory) checkAllOptions() error {
	count := 0
	for i := range v.AirConditioners {
		options, err := v.optionsOf(i)
		if err != nil {
			return err
		}
		if count += countOptions(options); count > maxOptionNodes {
			return fmt.Errorf("the air conditioners have more than %d options: %w", maxOptionNodes, ErrTooLarge)
		}
	}
	return nil
}

func countOptions(options []Option) int {
	count := len(options)
	for _, o := range options {
		count += countOptions(o.Children)
	}
	return count
}
