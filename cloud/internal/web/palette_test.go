package web

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/company"
)

// Each text of the console is readable on each of its grounds in both themes, and each border is visible (WCAG 2.2, success
// criteria 1.4.3 and 1.4.11). Browser tests cannot judge striped grounds and states that a test does not show.
func TestConsolePalettes(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("src/styles/console-base.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, ok := strings.Cut(string(css), `:root[data-theme="dark"] {`)
	if !ok {
		t.Fatal("there is no dark theme")
	}
	dark, _, _ := strings.Cut(rest, "}")
	light, _, _ = strings.Cut(light, "}")
	texts := map[string]string{
		"ink": "ground card accent-tint", "soft": "ground card grey-tint", "muted": "grey-tint well card", "faint": "grey-tint ground card",
		"accent-deep": "card ground accent-tint", "on-accent": "accent accent-deep", "paid-ink": "accent-tint card",
		"good": "card good-tint", "bad": "card ground bad-tint", "bad-ink": "bad-tint", "warn": "warn-tint", "warn-ink": "warn-tint hold-fill wait-fill wait-gap",
		"staff": "staff-tint", "staff-ink": "staff-tint", "partner": "partner-tint", "partner-ink": "partner-tint", "quarantine-ink": "quarantine-fill quarantine-gap",
	}
	borders := map[string]string{
		"edge": "card", "accent": "card ground", "hold-edge": "card", "staff-edge": "card", "partner-edge": "card", "quarantine-edge": "card", "bad-edge": "card", "knob": "off accent",
	}
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		palette := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(text, -1) {
			if color := m[2]; len(color) == 4 {
				m[2] = "#" + strings.Repeat(color[1:2], 2) + strings.Repeat(color[2:3], 2) + strings.Repeat(color[3:], 2)
			}
			palette[m[1]] = m[2]
		}
		check := func(pairs map[string]string, least float64) {
			for front, grounds := range pairs {
				for ground := range strings.FieldsSeq(grounds) {
					if ratio := company.Contrast(palette[front], palette[ground]); ratio < least {
						t.Errorf("%s: the contrast of %s on %s is %.2f, want at least %v", theme, front, ground, ratio, least)
					}
				}
			}
		}
		check(texts, 4.5)
		check(borders, 3)
	}
}
