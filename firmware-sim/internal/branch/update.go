package branch

import (
	"context"
	"strings"

	"github.com/yeolda/yeolda/protocol"
)

// brokenVersion is the end of the versions with which a simulated agent does worse: a self-test fails.
const brokenVersion = "+broken"

// updates is the state of the agent's updates. A simulated agent changes its version without a package, by a restart.
type updates struct {
	installed string // empty: the configured version
}

// update installs a version.
func (b *Branch) update(_ context.Context, m protocol.Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.installedVersion() == m.Version || b.stopAgent == nil {
		return
	}
	b.cfg.Logger.Info("update installed", "branch", b.cfg.Branch, "version", m.Version)
	b.installed = m.Version
	b.stopAgent()
	b.stopAgent = nil
}

func (b *Branch) installedVersion() string {
	if b.installed != "" {
		return b.installed
	}
	return b.cfg.Version
}

func (b *Branch) version() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.installedVersion()
}

func (*Branch) updateStatus() *protocol.UpdateStatus { return nil }

// selfTests fails with a broken version.
func (b *Branch) selfTests() []protocol.SelfTest {
	if strings.HasSuffix(b.version(), brokenVersion) {
		return []protocol.SelfTest{{Name: "update", Detail: "this version is broken"}}
	}
	return nil
}
