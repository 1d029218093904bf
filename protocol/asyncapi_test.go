package protocol

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAsyncAPI compares the document with the code: the same topics, each with the direction, QoS and retain flag of the
// table in topic.go. It reads the few lines it needs by pattern, because this module has no YAML parser.
func TestAsyncAPI(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	described := make(map[string]string) // channel name: kind
	for _, m := range regexp.MustCompile(`(?m)^  (\w+):\n    address: yeolda/v1/\{branch\}/agent/\{username\}/(\S+)$`).FindAllStringSubmatch(string(doc), -1) {
		described[m[1]] = m[2]
	}
	var inCode []string
	for k := range Kinds() {
		inCode = append(inCode, string(k))
	}
	slices.Sort(inCode)
	if inDoc := slices.Sorted(maps.Values(described)); !slices.Equal(inCode, inDoc) {
		t.Fatalf("channels of asyncapi.yaml:\n%v\ntopics of the code:\n%v", inDoc, inCode)
	}

	operations := make(map[string]string) // kind: "send qos 1 retain false"
	pattern := regexp.MustCompile(`(?m)^    action: (\w+)\n    channel: \{\$ref: '#/channels/(\w+)'\}\n    bindings: \{mqtt: \{qos: (\d), retain: (\w+)`)
	for _, m := range pattern.FindAllStringSubmatch(string(doc), -1) {
		operations[described[m[2]]] = fmt.Sprintf("%s qos %s retain %s", m[1], m[3], m[4])
	}
	for k := range Kinds() {
		action := "receive"
		if k.FromAgent() {
			action = "send"
		}
		want := fmt.Sprintf("%s qos %d retain %v", action, k.QoS(), k.Retained())
		if got := operations[string(k)]; got != want {
			t.Errorf("%s: asyncapi.yaml has %q, want %q", k, got, want)
		}
	}

	for _, m := range regexp.MustCompile(`\$ref: '#/([\w/]+)'`).FindAllStringSubmatch(string(doc), -1) {
		name := m[1][strings.LastIndex(m[1], "/")+1:]
		if !regexp.MustCompile(`(?m)^ +` + name + `:`).Match(doc) {
			t.Errorf("undefined reference %s", m[1])
		}
	}
}
