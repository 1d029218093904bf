package check

// own is the rule about the proof that the service makes of its own rows. It checks the same promises from inside, so a violation
// that only it finds is an error of one of the two.
var own = []rule{{id: "S1", text: "the service's own proof of its rows finds no violation", check: ownProof}}

func ownProof(b *books, f *finding) {
	for _, rule := range b.Proof {
		f.Observations += rule.Checked
		for _, found := range rule.Found {
			f.violated("%s %s", rule.ID, found)
		}
	}
}
