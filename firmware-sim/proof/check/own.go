package check

// own are the rules about the proofs that the service keeps of its own rows: they check the same promises from inside, so a violation
// that only they find is an error of one of the two.
var own = []rule{
	{id: "S1", text: "the service's own proof of its rows finds no violation", check: ownProof},
	{id: "S2", text: "the audit log holds, and rows of money, doors and passes are as they were linked", check: ownAudit},
}

func ownProof(b *books, f *finding) {
	for _, rule := range b.Proof {
		f.Observations += rule.Checked
		for _, found := range rule.Found {
			f.violated("%s %s", rule.ID, found)
		}
	}
}

func ownAudit(b *books, f *finding) {
	f.Observations = b.Audit.Rows
	if b.Audit.Problem != "" {
		f.violated("%s", b.Audit.Problem)
	}
	if b.Audit.Unlinked > 0 {
		f.violated("%d entries of the audit log were never linked", b.Audit.Unlinked)
	}
}
