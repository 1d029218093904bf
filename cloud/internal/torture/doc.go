// Package torture kills the service at each of the crash points of the money's rules, cuts and distorts its lines to
// the payment provider and to PostgreSQL, and then asks the provider's own ledger whether a won or a slot was lost.
//
// Everything is real but the provider: the program, built with the tag failpoint, runs as a process of its own on a
// database of its own, and ends by exit, kill or signal. What each point demands, and within which time, stands beside
// it in the table of crash points. `go test` goes through the table once, in haste; `make torture` goes through it
// twenty times at the true pace and prints the result.
package torture
