package web

import (
	_ "embed"
	"fmt"
)

//go:embed src/icon.svg
var iconSVG []byte

//go:embed src/manifest.webmanifest
var manifest []byte

const robots = "User-agent: *\nDisallow: /k/\nDisallow: /my\nDisallow: /book/\n"

// fixedFiles makes the files that are known by their names.
func fixedFiles() (map[string]asset, error) {
	worker, err := inline(sources(), "sw.ts")
	if err != nil {
		return nil, fmt.Errorf("bundle the service worker: %w", err)
	}
	files := map[string]asset{
		"/icon.svg":             newAsset("icon.svg", iconSVG),
		"/manifest.webmanifest": newAsset("manifest.webmanifest", manifest),
		"/sw.js":                newAsset("sw.js", []byte(worker)),
		"/robots.txt":           newAsset("robots.txt", []byte(robots)),
	}
	for _, icon := range []struct {
		name     string
		size     int
		maskable bool
	}{{"icon-180", 180, true}, {"icon-192", 192, false}, {"icon-512", 512, false}, {"icon-maskable", 512, true}} {
		drawn, err := drawIcon(icon.size, icon.maskable)
		if err != nil {
			return nil, err
		}
		files["/"+icon.name+".png"] = newAsset(icon.name+".png", drawn)
	}
	return files, nil
}
