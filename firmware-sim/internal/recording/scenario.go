package recording

import (
	"embed"
	"path"
	"strings"
)

//go:embed scenario/*.json
var files embed.FS

// Scenarios are the recordings that are part of the simulator, by name.
var Scenarios = func() map[string]Recording {
	entries, err := files.ReadDir("scenario")
	if err != nil {
		panic("recording: " + err.Error()) // embedded in the program
	}
	all := make(map[string]Recording, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("scenario", entry.Name()))
		if err != nil {
			panic("recording: " + err.Error())
		}
		if all[strings.TrimSuffix(entry.Name(), ".json")], err = Parse(text); err != nil {
			panic("recording: scenario " + entry.Name() + ": " + err.Error())
		}
	}
	return all
}()
