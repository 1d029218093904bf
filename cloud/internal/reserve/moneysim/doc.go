// Package moneysim simulates the payment protocol: customers, an administrator, the provider's callbacks and the sweep at
// once, with a process that dies at any step and a network that loses requests and answers, in the fake time of
// testing/synctest. After every run the rules for money (M1 to M8 of the reliability requirements) are held against the
// provider's ledger.
//
//	customers, administrator, ─► model (the verbs of package reserve over rows in memory) ─► toss.Client ─► sandbox
//	callbacks, sweep              decisions: package rule, the real ones                    the real one   the provider
//
// PostgreSQL cannot be had where time is simulated, so rows and statements are a model here. A second test does the same
// at random to the model and to reserve.Service on PostgreSQL, with one provider that answers both alike, and compares
// every row. It is all test code:
//
//	go test ./internal/reserve/moneysim                          # 5,000 seeds
//	go test ./internal/reserve/moneysim -run Seeds -seed 17 -v   # one, with everything that happened
package moneysim
