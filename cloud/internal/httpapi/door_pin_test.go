package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// doorPIN is an element of the list of doors.
type doorPIN struct {
	Kind               string `json:"kind"`
	ChangedAt          string `json:"changedAt"`
	RevealsSinceChange int    `json:"revealsSinceChange"`
}

func pinOf(t *testing.T, c *servicetest.Client, device string) doorPIN {
	t.Helper()
	var list struct {
		Doors []struct {
			Device string  `json:"device"`
			PIN    doorPIN `json:"pin"`
		} `json:"doors"`
	}
	c.Get("/v2/admin/branches/gangnam/doors").OK(t).Into(t, &list)
	for _, d := range list.Doors {
		if d.Device == device {
			return d.PIN
		}
	}
	t.Fatalf("no door %s", device)
	return doorPIN{}
}

// The branch is offline, so every request fails at once and its PIN is disclosed, but only to the actor of the request.
func TestOnlyTheActorSeesThePIN(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.StandaloneKeypads(t)
	cast := newCast(t, s)
	const subscribe = "/admin/door/v2/unlock/subscribe?requestId="
	key := keyFor(t, s, 1)
	guests := requestID(t, cast.Nobody, "/door/v2/unlock", map[string]string{"branch": "gangnam", "doorlockType": "room", "key": key})
	staffs := requestID(t, cast.Manager, adminUnlock+"gangnam/front", nil)
	pin := func(c *servicetest.Client, path string) string {
		event := c.Send("GET", path, nil, nil).Event(t)
		if event.FailoverKey == nil {
			return ""
		}
		return *event.FailoverKey
	}
	if pin(cast.Nobody, "/door/v2/unlock/subscribe?requestId="+guests+"&key="+key) == "" {
		t.Error("the guest does not see the PIN")
	}
	for _, r := range []struct {
		role   string
		client *servicetest.Client
		of     map[string]bool // requests whose PIN is shown
	}{
		{"manager", cast.Manager, map[string]bool{staffs: true}}, {"hq", cast.HQ, nil}, {"viewer", cast.Viewer, nil},
	} {
		for _, id := range []string{guests, staffs} {
			if got := pin(r.client, subscribe+id) != ""; got != r.of[id] {
				t.Errorf("%s sees the PIN of %s: %t, want %t", r.role, map[bool]string{true: "the guest", false: "the manager"}[id == guests], got, r.of[id])
			}
		}
	}
	// A manager who has become a viewer no longer sees the PIN.
	if _, err := s.DB.Pool.Exec(t.Context(), `update administrator set role = 'viewer' where login_id = $1`, "gangnam-manager"); err != nil {
		t.Fatal(err)
	}
	if pin(cast.Manager, subscribe+staffs) != "" {
		t.Error("a viewer sees the PIN of a press from before")
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update administrator set role = 'manager' where login_id = $1`, "gangnam-manager"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update door_request set created_at = created_at - interval '10 minutes'`); err != nil {
		t.Fatal(err)
	}
	if pin(cast.Manager, subscribe+staffs) != "" || pin(cast.Nobody, "/door/v2/unlock/subscribe?requestId="+guests+"&key="+key) != "" {
		t.Error("the PIN is shown after ten minutes")
	}
	audit := string(cast.Viewer.Get("/v2/admin/branches/gangnam/audit").OK(t).Raw)
	if !strings.Contains(audit, "door.unlock") || strings.Contains(audit, guests) || strings.Contains(audit, staffs) {
		t.Errorf("audit for a viewer has ids of door requests: %s", audit)
	}
	if audit := string(cast.HQ.Get("/v2/admin/branches/gangnam/audit").OK(t).Raw); !strings.Contains(audit, staffs) {
		t.Error("audit for the headquarters lacks the id of a door request")
	}
}

func TestDisclosedPINsAreListed(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.StandaloneKeypads(t)
	hq := s.Admin(t, "hq", "hq-demo")
	alerts := func() (open int) {
		if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from alert where kind = $1 and branch = 'gangnam' and subject = 'front' and ended_at is null`, "pin-exposed").Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open
	}
	before := pinOf(t, hq, "front_1")
	if before.Kind != "standalone" || before.ChangedAt == "" || before.RevealsSinceChange != 0 || alerts() != 0 {
		t.Errorf("before a disclosure: %+v, %d alerts", before, alerts())
	}
	for range 2 {
		id := requestID(t, hq, adminUnlock+"gangnam/front", nil)
		hq.Send("GET", "/admin/door/v2/unlock/subscribe?requestId="+id, nil, nil).Event(t)
	}
	for _, device := range []string{"front_1", "front_2"} {
		if got := pinOf(t, hq, device); got.RevealsSinceChange != 2 {
			t.Errorf("%s: %+v, want 2 disclosures", device, got)
		}
	}
	if got := pinOf(t, hq, "room_1"); got.RevealsSinceChange != 0 || alerts() != 1 {
		t.Errorf("room_1: %+v, %d alerts, want 1 for the front doors", got, alerts())
	}
	hq.Put("/v2/admin/branches/gangnam/doors/front_1/pin", map[string]string{"pin": "135790"}).OK(t)
	if got := pinOf(t, hq, "front_2"); got.RevealsSinceChange != 0 || got.ChangedAt == before.ChangedAt || alerts() != 0 {
		t.Errorf("after the change: %+v, %d alerts", got, alerts())
	}
	hq.Put("/v2/admin/branches/gangnam/doors/front/pin", map[string]string{"pin": "12"}).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	hq.Put("/v2/admin/branches/gangnam/doors/front_3/pin", map[string]string{"pin": "135790"}).Fails(t, http.StatusNotFound, "ResourceNotFoundException", "")
}
