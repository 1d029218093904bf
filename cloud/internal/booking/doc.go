// Package booking holds the nouns of the business and the rules about them:
// branches and rooms, slots and intervals, prices, opening hours, reservations.
//
// Every rule about money, time and doors is decided here and nowhere else, so
// that it can be read on one page and tested without a database, a clock or a
// network. For that the package does no I/O, reads no clock (rules take now),
// never looks at the zone of the process (rules take the zone of the branch),
// and imports only the standard library. The verbs that act on these nouns are
// in packages reserve and access.
//
// # Time
//
// An [Interval] is half open and ends at the real end, the moment the guest
// leaves. It keeps its room busy for ten minutes more ([Interval.Occupied]), so
// two reservations of a room are always at least [Margin] apart:
//
//	15:00            16:00 16:10            17:00 17:10
//	  |------- A -------|margin|------- B -----|margin|
//	  |-- A.Occupied() --------|-- B.Occupied() ------|
//
// # States of a reservation
//
//	           pay               provider approves
//	HOLD ------------> CONFIRMING ---------------> DONE ------> CANCELING ---> CANCELED
//	 |  ^ provider refuses |                        ^   cancel      ^            ^
//	 |  +------------------+                        | deposit       | overdue,   |
//	 |                     | virtual account        |               | cancel     |
//	 |                     +-------------> WAITING_FOR_DEPOSIT -----+            |
//	 |                                                                           |
//	 +--> EXPIRED (its time ran out)             no money moved: straight here --+
//	 +--> RELEASED (given back)
//
// HOLD goes straight to DONE when an administrator registers a reservation
// without payment, and to WAITING_FOR_DEPOSIT when he issues a virtual account.
// The first five states are live: they keep their room busy.
package booking
