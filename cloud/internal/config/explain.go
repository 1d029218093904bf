package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A Line is one effective setting.
type Line struct {
	Variable string
	Value    string // secrets and passwords masked
	Origin   string // flag, environment, file NAME, default, demo, derived, or not set
}

// Explain makes settings parsed by kong effective and returns each value with its origin.
func Explain(parsed *kong.Context, settings *Settings) []Line {
	type source struct {
		flag   *kong.Flag
		before any
	}
	var sources []source
	for _, flag := range parsed.Flags() {
		if len(flag.Envs) > 0 && strings.HasPrefix(flag.Envs[0], prefix) {
			sources = append(sources, source{flag, flag.Target.Interface()})
		}
	}
	*settings = settings.Effective() // the flags' targets are its fields
	lines := make([]Line, len(sources))
	for i, s := range sources {
		after := s.flag.Target.Interface()
		lines[i] = Line{s.flag.Envs[0], show(s.flag.Envs[0], after), origin(parsed, s.flag, s.before, after)}
	}
	return lines
}

func origin(parsed *kong.Context, flag *kong.Flag, before, after any) string {
	for _, step := range parsed.Path {
		if step.Flag == flag && !step.Resolved {
			return "flag"
		}
	}
	variable, file := secretFile(flag)
	_, inEnvironment := os.LookupEnv(variable)
	secret, isSecret := after.(Secret)
	switch {
	case file != "":
		return "file " + file
	case inEnvironment:
		return "environment"
	case isSecret && secret.Demo():
		return "demo"
	case !reflect.DeepEqual(before, after):
		return "derived"
	case show(variable, after) == "":
		return "not set"
	}
	return "default"
}

// show formats a value on one line, passwords masked.
func show(variable string, value any) string {
	switch v := value.(type) {
	case Secret:
		return v.String()
	case string:
		if variable == "YEOLDA_BROKER_URL" {
			brokers := MQTT{BrokerURL: v}.BrokerURLs()
			for i := range brokers {
				brokers[i] = maskPassword(variable, brokers[i])
			}
			return strings.Join(brokers, ",")
		}
		return maskPassword(variable, v)
	case map[string]string:
		pairs := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, key+"="+v[key])
		}
		return strings.Join(pairs, ";")
	}
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
		items := make([]string, list.Len())
		for i := range items {
			items[i] = fmt.Sprint(list.Index(i))
		}
		return strings.Join(items, ",")
	}
	return fmt.Sprint(value)
}

func maskPassword(variable, text string) string {
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "password="), // a connection string, or the query of a URL
		err != nil && (strings.HasPrefix(variable, "YEOLDA_DATABASE_") || strings.Contains(text, "@")):
		return "***"
	case err == nil && u.User != nil:
		return u.Redacted()
	}
	return text
}
