package web

import (
	"fmt"
	"html/template"
	"io/fs"
	"regexp"
	"strings"
)

// iconView is an icon as its template shows it.
type iconView struct {
	Name  string
	Paths []string
}

var (
	drawing  = regexp.MustCompile(`draw\(\s*"(\w+)"((?:,\s*"[^"]+")+),?\s*\)`)
	quotedIn = regexp.MustCompile(`"([^"]+)"`)
)

// readIcons reads the icons of the browser code, by name.
func readIcons(tree fs.FS) (map[string]iconView, error) {
	source, err := fs.ReadFile(tree, "customer/icons.ts")
	if err != nil {
		return nil, err
	}
	icons := map[string]iconView{}
	for _, found := range drawing.FindAllStringSubmatch(string(source), -1) {
		icon := iconView{Name: found[1]}
		for _, path := range quotedIn.FindAllStringSubmatch(found[2], -1) {
			icon.Paths = append(icon.Paths, path[1])
		}
		icons[icon.Name] = icon
	}
	return icons, nil
}

// pair is the page together with the value that a part of its template shows.
type pair struct {
	Page  shellData
	Value any
	Index int
}

// markedText is a text that is marked as Korean on an English page.
type markedText struct {
	Text    string
	Foreign bool
}

// functions are those of the templates.
func functions(icons map[string]iconView) template.FuncMap {
	return template.FuncMap{
		"icon": func(name string) (iconView, error) {
			icon, ok := icons[name]
			if !ok {
				return icon, fmt.Errorf("no icon %q", name)
			}
			return icon, nil
		},
		"pair": func(page shellData, value any) pair { return pair{Page: page, Value: value} },
		"nth":  func(page shellData, value any, index int) pair { return pair{page, value, index} },
		"marked": func(page shellData, text bilingual) markedText {
			return markedText{page.Read(text), page.Foreign(text)}
		},
		"digits": func(text string) string { return strings.Join(digit.FindAllString(text, -1), "") },
	}
}

var digit = regexp.MustCompile(`[0-9]+`)
