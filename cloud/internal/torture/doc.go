// Package torture kills the service at each crash point of the payment protocol, interrupts and disturbs its connections to
// the payment provider and to PostgreSQL, and then compares the database with the provider's ledger: no won and no slot may
// be lost.
//
// Only the provider is simulated. The program is built with the tag failpoint, runs as a separate process on a separate
// database, and ends by exit, kill or signal. The table of crash points defines the expected result and time limit of each
// point. `go test` runs the table once with shortened times; `make torture` runs it twenty times with the real times and
// prints the result.
package torture
