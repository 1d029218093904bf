package main

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

type auditCmd struct {
	Verify auditVerifyCmd `cmd:"" help:"Verify the audit log's hash chain and the rows of money, doors and passes that it links; report what was changed or removed."`
}

// auditVerifyCmd is `yeolda audit verify`.
type auditVerifyCmd struct {
	Head     string          `placeholder:"PLACE:HASH" help:"Head printed by an earlier run; the log must contain it."`
	Database config.Database `embed:""`
}

// Run verifies the log. If the chain is broken, the exit code is 1.
func (c *auditVerifyCmd) Run(p *program) error {
	known, err := parseHead(c.Head)
	if err != nil {
		return err
	}
	return p.withDatabase(c.Database, func(db *postgres.DB) error {
		head, unlinked, err := postgres.VerifyAudit(p.ctx, db.Pool, known)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%d entries, the chain holds; head %d:%s\n", head.Place, head.Place, hex.EncodeToString(head.Hash))
		rows, err := postgres.VerifyLinks(p.ctx, db.Pool)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%d rows of money, doors and passes are as they were linked\n", rows)
		if unlinked > 0 {
			fmt.Fprintf(p.out, "%d entries are not linked yet\n", unlinked)
		}
		return nil
	})
}

func parseHead(text string) (head postgres.AuditHead, err error) {
	if text == "" {
		return head, nil
	}
	place, hash, _ := strings.Cut(text, ":")
	if head.Place, err = strconv.ParseInt(place, 10, 64); err == nil {
		head.Hash, err = hex.DecodeString(hash)
	}
	if err != nil || head.Place < 1 || len(head.Hash) != 32 {
		return head, fmt.Errorf("--head is not PLACE:HASH as audit verify prints it: %q", text)
	}
	return head, nil
}
