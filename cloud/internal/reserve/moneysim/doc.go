// Package moneysim simulates the payment protocol: concurrent customers, an administrator, the provider's callbacks and the
// sweep, with processes that crash at any step and a network that loses requests and responses, in the fake time of
// testing/synctest. After every run the invariants for money (M1 to M8 of the reliability requirements) are checked against
// the provider's ledger.
//
//	customers, administrator, ─► model (operations of package reserve on rows in memory) ─► toss.Client ─► sandbox
//	callbacks, sweep              decisions: the real package rule                         the real one   the provider
//
// PostgreSQL cannot run in simulated time, so rows and statements are modelled in memory. A second test applies the same
// random operations to the model and to reserve.Service on PostgreSQL, with a provider that gives both the same responses,
// and compares every row. Which parts of payments were returned is counted where the provider executes a request, each part with an
// amount of its own, so no sum of the service decides what the books should be. One half of the runs has a refund policy; policy_test.go
// judges what the shop keeps by the times of the guest's requests alone. Not modelled are refunds that wait for a second
// administrator, and compensations of deposits, which wait for the account of the guest: see TestRandomRefunds and TestRandomChanges of
// package reserve. Extensions and exchanges of stays are drawn in changes_test.go, which also has the rules that must hold between a stay
// and its changes (S1 to S5). Doors that fail are drawn in compensation_test.go, with the rules of the compensation in two steps (S6 to S9).
//
// The package contains only test code:
//
//	go test ./internal/reserve/moneysim                          # 1,250 seeds; -seeds 5000 for more
//	go test ./internal/reserve/moneysim -run Seeds -seed 17 -v   # one seed, with its trace
package moneysim
