package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var branches = rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,62}`)

var usernames = rapid.StringMatching(`([a-z0-9][a-z0-9-]{0,99})?`)

var kinds = rapid.SampledFrom(slices.Collect(Kinds()))

func TestTopicRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want, kind := Agent{branches.Draw(t, "branch"), usernames.Draw(t, "username")}, kinds.Draw(t, "kind")
		got, gotKind, ok := ParseAgentTopic(want.Topic(kind))
		if want.Username == "" && kind.OwnTopic() {
			if ok {
				t.Fatalf("%s is a topic of the whole branch", want.Topic(kind))
			}
			return
		}
		if !ok || got != want || gotKind != kind {
			t.Fatalf("ParseAgentTopic(%q) = %v, %q, %v, want %v, %q", want.Topic(kind), got, gotKind, ok, want, kind)
		}
	})
}

func TestEveryTopicHasOneDirection(t *testing.T) {
	t.Parallel()
	own := Agent{"gangnam", "agent-gangnam"}
	for kind := range Kinds() {
		topics := []string{own.Topic(kind)}
		if shared := Topic("gangnam", kind); kind.OwnTopic() {
			if own.MayPublish(shared) || own.MaySubscribe(shared) {
				t.Errorf("%v may use %s of the whole branch", own, shared)
			}
		} else {
			topics = append(topics, shared)
		}
		for _, topic := range topics {
			if own.MayPublish(topic) == own.MaySubscribe(topic) {
				t.Errorf("%s: the agent must be allowed exactly one of publish and subscribe", topic)
			}
			for _, other := range []Agent{{"hongdae", "agent-hongdae"}, {"hongdae", "agent-gangnam"}} {
				if other.MayPublish(topic) || other.MaySubscribe(topic) {
					t.Errorf("%v may use %s of another branch", other, topic)
				}
			}
		}
		standby := Agent{"gangnam", "agent-gangnam-2"}
		if topic := own.Topic(kind); standby.MayPublish(topic) || standby.MaySubscribe(topic) {
			t.Errorf("%v may use %s of another credential", standby, topic)
		}
	}
}

func TestOtherTopicsAreForbidden(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{
		"", "#", "+", "$SYS/#", "$SYS/broker/version", "yeolda/v1/#", "yeolda/v1/+/door/ask", "yeolda/v1/gangnam/#",
		"yeolda/v1/gangnam/+", "yeolda/v1/gangnam/door/+", "yeolda/v1/gangnam/door/ask/", "/yeolda/v1/gangnam/door/ask",
		"yeolda/v1//door/ask", "yeolda/v1/gangnam", "yeolda/v1/gangnam/", "yeolda/v2/gangnam/door/ask", "yeolda/v1/Gangnam/door/ask",
		"$share/a/yeolda/v1/gangnam/door/ask", "$share/a/yeolda/v1/gangnam/status", "yeolda/v1/gangnam/door/ask\x00",
		"yeolda/v1/gangnam/agent/+/door/ask", "yeolda/v1/gangnam/agent/#", "yeolda/v1/gangnam/agent//door/ask",
		"yeolda/v1/gangnam/agent/agent-gangnam", "yeolda/v1/gangnam/agent/agent-gangnam/", "yeolda/v1/gangnam/agent/a/b/door/ask",
	} {
		for _, agent := range []Agent{{"gangnam", "agent-gangnam"}, {"gangnam", ""}, {"gangnam", "+"}, {"", ""}, {"+", "+"}, {"#", "#"}} {
			if agent.MayPublish(topic) || agent.MaySubscribe(topic) {
				t.Errorf("%v may use %q", agent, topic)
			}
		}
	}
}

func TestAgentFiltersAreAllowed(t *testing.T) {
	t.Parallel()
	own := Agent{"gangnam", "agent-gangnam"}
	for agent, want := range map[Agent]int{own: 14, {Branch: "gangnam"}: 5} {
		n := 0
		for filter := range agent.Filters() {
			n++
			if !own.MaySubscribe(filter) {
				t.Errorf("%v may not subscribe to %s", own, filter)
			}
		}
		if n != want {
			t.Errorf("%v has %d subscriptions, want %d", agent, n, want)
		}
	}
}

func TestCloudFiltersMatchAgentTopics(t *testing.T) {
	t.Parallel()
	filters := make(map[string]Kind)
	for kind, filter := range CloudFilters() {
		filters[filter] = kind
	}
	for kind := range Kinds() {
		for _, filter := range []string{"yeolda/v1/+/" + string(kind), "yeolda/v1/+/agent/+/" + string(kind)} {
			want := kind.FromAgent() && (!kind.OwnTopic() || strings.Contains(filter, "/agent/"))
			if _, subscribed := filters[filter]; subscribed != want {
				t.Errorf("%s: cloud subscribes %v, want %v", filter, subscribed, want)
			}
		}
	}
}

func TestTopicPanicsOnWildcards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agent Agent
		kind  Kind
	}{
		{Agent{"+", ""}, KindDoorAsk}, {Agent{"a/b", ""}, KindDoorAsk}, {Agent{"", ""}, KindStatus}, {Agent{"-a", ""}, KindStatus},
		{Agent{strings.Repeat("a", 64), ""}, KindStatus}, {Agent{"a", ""}, "door/#"},
		{Agent{"a", "+"}, KindStatus}, {Agent{"a", "b/c"}, KindStatus}, {Agent{"+", "a"}, KindStatus}, {Agent{"a", "b"}, "door/#"},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v.Topic(%q) did not panic", c.agent, c.kind)
				}
			}()
			c.agent.Topic(c.kind)
		}()
	}
}

func ExampleTopic() {
	fmt.Println(Topic("gangnam", KindDoorAsk))
	// Output: yeolda/v1/gangnam/door/ask
}

func ExampleAgent_Topic() {
	fmt.Println(Agent{"gangnam", "agent-gangnam-x3"}.Topic(KindDoorGrant))
	// Output: yeolda/v1/gangnam/agent/agent-gangnam-x3/door/grant
}
