package main

import (
	"fmt"
	"io"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// agentACLCmd is `yeolda agent acl`.
type agentACLCmd struct {
	Cloud    string          `default:"cloud" help:"User name of the service at the broker."`
	Service  bool            `help:"Print the rules of the service only, for a listener that no agent reaches."`
	Database config.Database `embed:""`
}

// Run prints the access rules of an external broker in the format of Mosquitto's acl_file. The embedded broker uses
// the same functions of package protocol.
func (c *agentACLCmd) Run(p *program) error {
	if c.Service {
		fmt.Fprintln(p.out, "# Made by yeolda agent acl --service.")
		writeCloudRules(p.out, c.Cloud)
		return nil
	}
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		agents, err := postgres.AgentCredentials(p.ctx, db.Pool)
		if err != nil {
			return err
		}
		fmt.Fprintln(p.out, "# Made by yeolda agent acl. Make it again after yeolda agent enroll or revoke, and have the broker read it.")
		writeCloudRules(p.out, c.Cloud)
		for _, a := range agents {
			if a.RevokedAt.IsZero() {
				writeAgentRules(p.out, a.Username, a.Branch)
			}
		}
		return nil
	})
}

func writeCloudRules(out io.Writer, username string) {
	fmt.Fprintf(out, "\nuser %s\n", username)
	for kind := range protocol.Kinds() {
		right := "write"
		if kind.FromAgent() {
			right = "read"
		}
		for _, filter := range protocol.Filters(kind) {
			fmt.Fprintf(out, "topic %s %s\n", right, filter)
		}
	}
}

func writeAgentRules(out io.Writer, username, branch string) {
	fmt.Fprintf(out, "\nuser %s\n", username)
	agent := protocol.Agent{Branch: branch, Username: username}
	for kind := range protocol.Kinds() {
		for _, topic := range []string{agent.Topic(kind), protocol.Topic(branch, kind)} {
			if agent.MayPublish(topic) {
				fmt.Fprintf(out, "topic write %s\n", topic)
			}
			if agent.MaySubscribe(topic) {
				fmt.Fprintf(out, "topic read %s\n", topic)
			}
		}
	}
}
