package web

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// readMetafile records the output file of each entry point and the files that it imports statically.
func (b *bundle) readMetafile(text string) error {
	var meta struct {
		Outputs map[string]struct {
			EntryPoint string `json:"entryPoint"`
			Imports    []struct {
				Path string `json:"path"`
				Kind string `json:"kind"`
			} `json:"imports"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal([]byte(text), &meta); err != nil {
		return fmt.Errorf("read the bundler's metafile: %w", err)
	}
	for name, output := range meta.Outputs {
		if output.EntryPoint == "" {
			continue
		}
		source := strings.TrimPrefix(output.EntryPoint, "src:")
		b.entry[source] = path.Base(name)
		for _, imported := range output.Imports {
			if imported.Kind == "import-statement" {
				b.needs[source] = append(b.needs[source], path.Base(imported.Path))
			}
		}
		slices.Sort(b.needs[source])
	}
	return nil
}
