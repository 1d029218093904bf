package web

import (
	"regexp"
	"slices"
	"testing"
)

// TestConsoleOffersEveryCancelReason compares the reasons that the console offers with those that the service records as they are:
// any other one counts as "other".
func TestConsoleOffersEveryCancelReason(t *testing.T) {
	t.Parallel()
	quoted := func(file, list string) (names []string) {
		t.Helper()
		found := regexp.MustCompile(list).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s has no %s", file, list)
		}
		for _, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(found[1], -1) {
			names = append(names, m[1])
		}
		return names
	}
	service := append(quoted("../reserve/cancel.go", `(?m)^var cancelReasons = \[\]CancelReason\{"", (.*), otherReason\}$`), "other")
	offered := quoted("src/console/day/cancel.ts", `(?m)^const reasons = \[(.*)\] as const;$`)
	if !slices.Equal(offered, service) {
		t.Errorf("the console offers %q, the service records %q", offered, service)
	}
}
