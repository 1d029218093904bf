package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var branches = rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,62}`)

var kinds = rapid.SampledFrom(slices.Collect(Kinds()))

func TestTopicRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		branch, kind := branches.Draw(t, "branch"), kinds.Draw(t, "kind")
		gotBranch, gotKind, ok := ParseTopic(Topic(branch, kind))
		if !ok || gotBranch != branch || gotKind != kind {
			t.Fatalf("ParseTopic(Topic(%q, %q)) = %q, %q, %v", branch, kind, gotBranch, gotKind, ok)
		}
	})
}

func TestEveryTopicHasOneDirection(t *testing.T) {
	t.Parallel()
	for kind := range Kinds() {
		topic := Topic("gangnam", kind)
		if AgentMayPublish("gangnam", topic) == AgentMaySubscribe("gangnam", topic) {
			t.Errorf("%s: the agent must be allowed exactly one of publish and subscribe", topic)
		}
		if AgentMayPublish("hongdae", topic) || AgentMaySubscribe("hongdae", topic) {
			t.Errorf("%s is open to another branch", topic)
		}
	}
}

func TestAgentMayNothingElse(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{
		"", "#", "+", "$SYS/#", "$SYS/broker/version", "yeolda/v1/#", "yeolda/v1/+/door/ask", "yeolda/v1/gangnam/#",
		"yeolda/v1/gangnam/+", "yeolda/v1/gangnam/door/+", "yeolda/v1/gangnam/door/ask/", "/yeolda/v1/gangnam/door/ask",
		"yeolda/v1//door/ask", "yeolda/v1/gangnam", "yeolda/v1/gangnam/", "yeolda/v2/gangnam/door/ask", "yeolda/v1/Gangnam/door/ask",
		"$share/a/yeolda/v1/gangnam/door/ask", "$share/a/yeolda/v1/gangnam/status", "yeolda/v1/gangnam/door/ask\x00",
	} {
		for _, branch := range []string{"gangnam", "", "+", "#"} {
			if AgentMayPublish(branch, topic) || AgentMaySubscribe(branch, topic) {
				t.Errorf("agent of %q may use %q", branch, topic)
			}
		}
	}
}

func TestAgentFiltersAreAllowed(t *testing.T) {
	t.Parallel()
	n := 0
	for filter := range AgentFilters("gangnam") {
		n++
		if !AgentMaySubscribe("gangnam", filter) {
			t.Errorf("agent may not subscribe to its own %s", filter)
		}
	}
	if n != 5 {
		t.Errorf("agent has %d subscriptions, want 5", n)
	}
}

func TestCloudFiltersMatchWhatAgentsPublish(t *testing.T) {
	t.Parallel()
	filters := make(map[string]Kind)
	for kind, filter := range CloudFilters() {
		filters[filter] = kind
	}
	for kind := range Kinds() {
		filter := strings.Replace(Topic("gangnam", kind), "gangnam", "+", 1)
		if _, subscribed := filters[filter]; subscribed != kind.FromAgent() {
			t.Errorf("%s: cloud subscribes %v, agent publishes %v", kind, subscribed, kind.FromAgent())
		}
	}
}

func TestTopicPanicsOnWildcards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		branch string
		kind   Kind
	}{{"+", KindDoorAsk}, {"a/b", KindDoorAsk}, {"", KindStatus}, {"-a", KindStatus}, {strings.Repeat("a", 64), KindStatus}, {"a", "door/#"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Topic(%q, %q) did not panic", c.branch, c.kind)
				}
			}()
			Topic(c.branch, c.kind)
		}()
	}
}

func ExampleTopic() {
	fmt.Println(Topic("gangnam", KindDoorAsk))
	// Output: yeolda/v1/gangnam/door/ask
}
