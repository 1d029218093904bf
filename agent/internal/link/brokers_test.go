package link

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
)

// Branches are spread evenly. The agents of a broker that is away are spread over the others, and no other agent moves.
func TestOrderOfBrokers(t *testing.T) {
	t.Parallel()
	list, err := ParseURLs("wss://a.example/mqtt wss://b.example/mqtt,wss://c.example/mqtt")
	if err != nil {
		t.Fatal(err)
	}
	const branches = 3000
	homes, seconds := make(map[string]int), make(map[string]int)
	for n := range branches {
		b := brokers{branch: fmt.Sprintf("branch-%d", n)}
		b.set(list, nil)
		home := b.home()
		homes[home.Host]++
		order := slices.Clone(b.order)
		slices.Reverse(list)
		b.set(list, nil)
		if !slices.Equal(b.order, order) {
			t.Fatalf("the order depends on that of the list: %v, %v", b.order, order)
		}
		rest := slices.DeleteFunc(slices.Clone(list), func(u *url.URL) bool { return u.Host == "a.example" })
		b.set(rest, nil)
		if home.Host == "a.example" {
			seconds[b.home().Host]++
		} else if b.home() != home {
			t.Fatalf("an agent of %s moved to %s", home.Host, b.home().Host)
		}
	}
	for host, n := range homes {
		if n < branches/3*9/10 || n > branches/3*11/10 {
			t.Errorf("%d of %d agents at %s, want a third", n, branches, host)
		}
	}
	for host, n := range seconds {
		if half := homes["a.example"] / 2; n < half*8/10 || n > half*12/10 {
			t.Errorf("%d agents of a.example moved to %s, want %d", n, host, half)
		}
	}
}

func TestNeighboursOfABroker(t *testing.T) {
	t.Parallel()
	list, err := ParseURLs("mqtt://a, mqtt://b, mqtt://c, mqtt://a")
	if err != nil || len(list) != 3 {
		t.Fatalf("got %v, %v, want three brokers", list, err)
	}
	b := brokers{branch: "gangnam"}
	b.set(list, nil)
	first, second, third := b.order[0], b.order[1], b.order[2]
	gone := &url.URL{Scheme: "mqtt", Host: "gone:1883"}
	for _, tc := range []struct {
		of, after *url.URL
		better    []*url.URL
	}{
		{first, second, nil},
		{second, third, []*url.URL{first}},
		{third, first, []*url.URL{first, second}},
		{gone, first, []*url.URL{first, second, third}},
	} {
		if got := b.after(tc.of); got != tc.after {
			t.Errorf("after %s: got %s, want %s", tc.of, got, tc.after)
		}
		if got := b.better(tc.of); !slices.Equal(got, tc.better) {
			t.Errorf("better than %s: got %v, want %v", tc.of, got, tc.better)
		}
	}
}
