package httpapi

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

//go:embed asyncapi.html
var asyncAPIFile embed.FS

// asyncAPI is the part of asyncapi.yaml that the page shows.
type asyncAPI struct {
	Info       struct{ Title, Description string }
	Channels   map[string]channel
	Operations map[string]operation
	Components struct {
		Messages map[string]struct {
			Description string
			Payload     asyncSchema
		}
		Schemas map[string]asyncSchema
	}
}

type channel struct {
	Address, Description string
	Messages             map[string]reference
}

type operation struct {
	Action   string
	Channel  reference
	Bindings struct{ MQTT struct{ QoS int } }
}

type reference struct {
	Ref string `yaml:"$ref"`
}

// name returns the last element of a reference.
func (r reference) name() string { return r.Ref[strings.LastIndex(r.Ref, "/")+1:] }

// asyncSchema is a JSON Schema, as far as asyncapi.yaml uses it.
type asyncSchema struct {
	reference `yaml:",inline"`

	Type        any
	Description string
	Format      string
	Pattern     string
	Enum        []any
	Minimum     any
	Maximum     any
	MaxItems    any `yaml:"maxItems"`
	MaxLength   any `yaml:"maxLength"`
	Required    []string
	Items       *asyncSchema
	Properties  map[string]asyncSchema
}

// shownMessage is a message in one direction.
type shownMessage struct {
	Name, Action, Topic, Description, MessageDescription string
	Payload                                              template.HTML
	QoS                                                  int
}

// shownSchema is a payload or a part of one.
type shownSchema struct {
	Name, Description string
	Type              template.HTML
	Fields            []shownField
}

type shownField struct {
	Name, Description string
	Required          bool
	Type              template.HTML
}

// agentProtocol returns the HTML of asyncapi.yaml.
func agentProtocol(contract []byte) (string, error) {
	var doc asyncAPI
	if err := yaml.Unmarshal(contract, &doc); err != nil {
		return "", fmt.Errorf("asyncapi.yaml: %w", err)
	}
	page, err := template.New("asyncapi.html").Funcs(template.FuncMap{"markdown": fromMarkdown}).ParseFS(asyncAPIFile, "asyncapi.html")
	if err != nil {
		return "", err
	}
	var shown bytes.Buffer
	err = page.Execute(&shown, map[string]any{"Info": doc.Info, "Shown": doc.messages(), "Schemas": doc.schemas()})
	return shown.String(), err
}

// messages returns the messages of all operations, sorted by topic.
func (d asyncAPI) messages() (list []shownMessage) {
	for _, o := range d.Operations {
		on := d.Channels[o.Channel.name()]
		for _, ref := range on.Messages {
			message := d.Components.Messages[ref.name()]
			list = append(list, shownMessage{
				Name: ref.name(), Action: o.Action, Topic: on.Address, Description: on.Description, MessageDescription: message.Description,
				Payload: typeOf(message.Payload), QoS: o.Bindings.MQTT.QoS,
			})
		}
	}
	slices.SortFunc(list, func(a, b shownMessage) int { return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Name, b.Name)) })
	return list
}

func (d asyncAPI) schemas() (list []shownSchema) {
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		list = append(list, shownSchema{Name: name, Description: s.Description, Type: typeOf(s), Fields: fieldsOf(s, "")})
	}
	return list
}

// fieldsOf returns the fields of an object and of the objects inside, which have their path as name.
func fieldsOf(s asyncSchema, prefix string) (list []shownField) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		list = append(list, shownField{
			Name: prefix + name, Description: field.Description, Required: slices.Contains(s.Required, name), Type: typeOf(field),
		})
		list = append(list, fieldsOf(field, prefix+name+".")...)
		if field.Items != nil {
			list = append(list, fieldsOf(*field.Items, prefix+name+"[].")...)
		}
	}
	return list
}

// typeOf describes the values of a schema in a few words.
func typeOf(s asyncSchema) template.HTML {
	if s.Ref != "" {
		name := template.HTMLEscapeString(s.name())
		return template.HTML(`<a href="#schema-` + name + `">` + name + `</a>`) //nolint:gosec // escaped above
	}
	if s.Items != nil {
		return "list of " + typeOf(*s.Items)
	}
	words := []string{}
	if s.Type != nil {
		words = append(words, fmt.Sprint(s.Type))
	}
	for _, limit := range []struct {
		word  string
		value any
	}{{"from", s.Minimum}, {"to", s.Maximum}, {"at most", s.MaxLength}} {
		if limit.value != nil {
			words = append(words, limit.word, fmt.Sprint(limit.value))
		}
	}
	for _, value := range s.Enum {
		words = append(words, fmt.Sprintf("%q", value))
	}
	words = append(words, s.Format, s.Pattern)
	return template.HTML(template.HTMLEscapeString(strings.TrimSpace(strings.Join(words, " ")))) //nolint:gosec // escaped
}

func fromMarkdown(text string) (template.HTML, error) {
	var body bytes.Buffer
	err := markdown.Convert([]byte(text), &body)
	return template.HTML(body.String()), err //nolint:gosec // our own files; raw HTML is left out
}
