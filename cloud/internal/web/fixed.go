package web

import (
	_ "embed"
	"fmt"
)

var (
	//go:embed src/icon.svg
	iconSVG []byte
	//go:embed src/icon-512.png
	iconPNG []byte
	// The maskable icon fills its square and keeps its drawing within the inner 80 %.
	//go:embed src/icon-maskable.png
	maskableIconPNG []byte
	//go:embed src/manifest.webmanifest
	manifest []byte
)

const robots = "User-agent: *\nDisallow: /k/\nDisallow: /my\nDisallow: /book/\nDisallow: /shell\n"

// fixedFiles returns the files with well-known names, by path.
func fixedFiles() (map[string]asset, error) {
	worker, err := inline(sources(), "sw.ts")
	if err != nil {
		return nil, fmt.Errorf("bundle the service worker: %w", err)
	}
	return map[string]asset{
		"/icon.svg":          newAsset("icon.svg", iconSVG),
		"/icon-512.png":      newAsset("icon-512.png", iconPNG),
		"/icon-maskable.png": newAsset("icon-maskable.png", maskableIconPNG),
		"/sw.js":             newAsset("sw.js", []byte(worker)),
		"/robots.txt":        newAsset("robots.txt", []byte(robots)),
	}, nil
}
