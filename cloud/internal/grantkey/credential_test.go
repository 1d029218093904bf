package grantkey_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/device"
)

// TestCopiedCardCannotConnect rotates the secrets of a credential, of which another machine has a copy. Afterwards only the
// agent that made the new secrets connects, and opens doors.
func TestCopiedCardCannotConnect(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.run(f.devices.Run)
	a := f.agent("load-0001")
	f.agent("load-0002")
	f.until("both agents are online", `select not exists (select from agent_credential where not online)`)
	copied := agenttest.Config{Branch: "load-0001", Dial: agenttest.TCP(f.addr), BootID: "copy"}

	cli := &device.Service{DB: f.db, Log: f.devices.Log}
	for range 2 { // the second continues the first
		if err := cli.RotateCredential(t.Context(), "agent-load-0001", "cli:root"); err != nil {
			t.Fatal(err)
		}
	}
	f.until("the new secrets are stored", `select rotated_at is not null and rotation is null from agent_credential where username = 'agent-load-0001'`)
	if _, err := agenttest.Try(t, copied); err == nil {
		t.Error("the copy has connected with the old password")
	}
	f.wantPress("load-0001", access.Success)

	select {
	case <-a.Gone(): // the session with the old secrets
	case <-time.After(time.Minute):
		t.Fatal("the session with the old secrets continues")
	}
	back := copied
	back.BootID, back.Key, back.Keys = "boot", a.NewKey(), f.trusted()
	agenttest.Connect(t, back)
	f.until("the agent is online", `select online from agent_credential where username = 'agent-load-0001'`)
	f.wantPress("load-0001", access.Success)
	f.wantPress("load-0002", access.Success)

	// A late or invented answer changes nothing.
	if err := f.devices.Rekeyed(t.Context(), f.of("load-0002"), a.Answer()); err != nil {
		t.Fatal(err)
	}
	f.until("the other credential keeps its password", `select public_key is null and rotated_at is null from agent_credential where username = 'agent-load-0002'`)
}
