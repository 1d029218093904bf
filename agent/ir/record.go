package ir

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Recording is a SmartIR file in the making: codes recorded from a remote control, by the names of SmartIR.
type Recording struct {
	manufacturer, model string
	plan                Plan
	commands            map[string]string // by path, joined with "/"
}

// Plan lists the options of a remote control. Empty FanModes or SwingModes omit that level.
type Plan struct {
	Modes        []string // "cool", "heat", "dry", "fan_only", "auto"
	FanModes     []string
	SwingModes   []string
	Temperatures []int // of the modes that use one
}

// noTemperature are the modes in which remotes ignore the temperature.
var noTemperature = []string{"fan_only", "fan", "dry"}

// NewRecording starts a file. The manufacturer and the model are for administrators.
func NewRecording(manufacturer, model string, plan Plan) *Recording {
	return &Recording{manufacturer: manufacturer, model: model, plan: plan, commands: make(map[string]string)}
}

// Resume adds the codes of an earlier, unfinished file.
func (r *Recording) Resume(data []byte) error {
	var file struct {
		Commands map[string]any `json:"commands"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return r.resume(nil, file.Commands)
}

func (r *Recording) resume(path []string, commands map[string]any) error {
	for key, value := range commands {
		below := append(slices.Clone(path), key)
		switch value := value.(type) {
		case string:
			r.commands[strings.Join(below, "/")] = value
		case map[string]any:
			if err := r.resume(below, value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("recording: %s is not a recorded code", strings.Join(below, "/"))
		}
	}
	return nil
}

// Paths returns the options of the plan in the order in which they are easiest to set on a remote: off, then mode, fan speed,
// fan direction and temperature.
func (r *Recording) Paths() [][]string {
	paths := [][]string{{"off"}}
	for _, mode := range r.plan.Modes {
		level := [][]string{{mode}}
		level = extend(level, r.plan.FanModes)
		level = extend(level, r.plan.SwingModes)
		if !slices.Contains(noTemperature, mode) {
			var temperatures []string
			for _, t := range r.plan.Temperatures {
				temperatures = append(temperatures, strconv.Itoa(t))
			}
			level = extend(level, temperatures)
		}
		paths = append(paths, level...)
	}
	return paths
}

// extend appends each option to each path, or returns the paths if there are no options.
func extend(paths [][]string, options []string) [][]string {
	if len(options) == 0 {
		return paths
	}
	var longer [][]string
	for _, p := range paths {
		for _, o := range options {
			longer = append(longer, append(slices.Clone(p), o))
		}
	}
	return longer
}

// Has reports whether the code of an option is recorded.
func (r *Recording) Has(path []string) bool {
	_, ok := r.commands[strings.Join(path, "/")]
	return ok
}

// Add stores the code of an option: durations in µs as a receiver measured them. It returns an error for a signal that could
// not be transmitted.
func (r *Recording) Add(path []string, durations []uint32) error {
	signal, err := newSignal(defaultCarrier, durations)
	if err != nil {
		return err
	}
	if len(path) == 0 {
		return errors.New("the code belongs to no option")
	}
	words := make([]string, len(signal.Durations))
	for i, d := range signal.Durations {
		words[i] = strconv.FormatUint(uint64(d), 10)
		if i%2 == 1 {
			words[i] = "-" + words[i]
		}
	}
	r.commands[strings.Join(path, "/")] = "[" + strings.Join(words, ",") + "]"
	return nil
}

// Encode returns the file, which ParseSmartIR reads.
func (r *Recording) Encode() ([]byte, error) {
	commands := make(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(r.commands)) {
		level, keys := commands, strings.Split(path, "/")
		for _, key := range keys[:len(keys)-1] {
			below, ok := level[key].(map[string]any)
			if !ok {
				below = make(map[string]any)
				level[key] = below
			}
			level = below
		}
		level[keys[len(keys)-1]] = r.commands[path]
	}
	file := map[string]any{
		"manufacturer": r.manufacturer, "supportedModels": []string{r.model}, "supportedController": "LIRC", "commandsEncoding": "Raw",
		"precision": 1, "operationModes": r.plan.Modes, "fanModes": r.plan.FanModes, "swingModes": r.plan.SwingModes, "commands": commands,
	}
	if n := len(r.plan.Temperatures); n > 0 {
		file["minTemperature"], file["maxTemperature"] = slices.Min(r.plan.Temperatures), slices.Max(r.plan.Temperatures)
	}
	return json.MarshalIndent(file, "", "  ")
}
