// Package crowdsim has a crowd of guests, administrators, partners, banks and the payment provider act at random on several replicas of the
// service, whose clocks are apart, over HTTP. Most of its verbs have a random test of their own elsewhere; this one crosses them: entities of
// branches change and retire during open orders, guests return from two tabs of the payment widget, prices and policies change, one request
// arrives at several replicas at once, closures and corrections meet moves and exchanges, rooms are disabled, partners' bookings in conflict
// are resolved, guests are blocked and erased, callbacks and partners' events arrive twice and in another order, and the database is replaced
// by a backup, after which the lost reservations are rebuilt.
//
//	guests, administrators, partners, calendars, callbacks ──▶ one of the replicas ──▶ PostgreSQL, the sandbox (with faults)
//
// A sequence has three acts. After each, every phone number follows the links that it has ever received, and all replicas stop; a backup is
// made after the first. In every other sequence the third act begins on the backup, so the second is lost. After the third act the faults
// end, administrators settle what waits for them, and rest_test.go and check_test.go compare the database with the provider's books,
// messages, passes and partners.
//
// A seed determines the verbs and their parameters, each drawn from the number of its step alone. It does not determine which of two
// concurrent verbs is first.
//
// The package contains only test code:
//
//	go test ./internal/crowdsim                               # a few sequences
//	go test ./internal/crowdsim -sequences 300 -timeout 3h    # many
//	go test ./internal/crowdsim -sequences 1 -seed 17 -v      # one, with its trace if it fails
package crowdsim
