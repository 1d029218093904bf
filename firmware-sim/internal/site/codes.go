package site

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/firmware-sim/internal/infrared"
)

// The settings of the demo's remote control, in the words of published code
// sets.
var (
	warmModes  = []string{"cool", "heat", "auto"} // those with a set point
	airModes   = []string{"dry", "fan"}
	fanSpeeds  = []string{"low", "mid", "high", "auto"}
	directions = []string{"off", "on"}
)

const minTemperature, maxTemperature = 18, 30 // °C

// LGCodeFile writes a SmartIR file for an LG unit with a louvre: power off, and
// each mode and fan speed with the louvre swinging or not, at every temperature
// where the mode has one.
func LGCodeFile() ([]byte, error) {
	commands := map[string]any{}
	// code gives one command; the first that cannot be encoded ends it all.
	var failed error
	code := func(s infrared.State) string {
		train, err := infrared.EncodeLG(s)
		if failed == nil {
			failed = err
		}
		return raw(train)
	}
	commands["off"] = code(infrared.State{})
	each := func(mode string, leaf func(infrared.State) any) {
		byFan := map[string]any{}
		for _, fan := range fanSpeeds {
			byDirection := map[string]any{}
			for _, direction := range directions {
				byDirection[direction] = leaf(infrared.State{Power: true, Mode: mode, Fan: fan, Direction: direction})
			}
			byFan[fan] = byDirection
		}
		commands[mode] = byFan
	}
	for _, mode := range warmModes {
		each(mode, func(s infrared.State) any {
			byTemperature := map[string]string{}
			for s.Temperature = minTemperature; s.Temperature <= maxTemperature; s.Temperature++ {
				byTemperature[strconv.Itoa(s.Temperature)] = code(s)
			}
			return byTemperature
		})
	}
	for _, mode := range airModes {
		each(mode, func(s infrared.State) any {
			s.Temperature = 24 // the frame has one all the same; units ignore it
			return code(s)
		})
	}
	if failed != nil {
		return nil, fmt.Errorf("code set: %w", failed)
	}
	return json.Marshal(map[string]any{
		"manufacturer": "LG", "supportedModels": []string{"simulated"}, "supportedController": "ESPHome", "commandsEncoding": "Raw",
		"minTemperature": minTemperature, "maxTemperature": maxTemperature, "precision": 1,
		"operationModes": append(append([]string{}, warmModes...), airModes...), "fanModes": fanSpeeds, "swingModes": directions,
		"commands": commands,
	})
}

// raw writes durations as ESPHome does: spaces are negative.
func raw(train []uint32) string {
	fields := make([]string, len(train))
	for i, d := range train {
		sign := ""
		if i%2 == 1 {
			sign = "-"
		}
		fields[i] = sign + strconv.FormatUint(uint64(d), 10)
	}
	return "[" + strings.Join(fields, ",") + "]"
}

// LGCodes is LGCodeFile as a branch's agent reads it.
func LGCodes() (*ir.CodeSet, error) {
	file, err := LGCodeFile()
	if err != nil {
		return nil, err
	}
	set, err := ir.ParseSmartIR(file)
	if err != nil {
		return nil, fmt.Errorf("code set: %w", err)
	}
	if len(set.Skipped) > 0 {
		return nil, fmt.Errorf("code set: %d codes are not understood, first: %s", len(set.Skipped), set.Skipped[0])
	}
	return set.Codes, nil
}
