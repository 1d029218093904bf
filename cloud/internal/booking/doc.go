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
//	       pay              approved                cancel           refunded
//	HOLD -------> CONFIRMING -------> DONE -----------------> CANCELING ----> CANCELED
//	 | ^            | |               ^ |                         ^
//	 | |  refused   | |       deposit | | deposit reversed        |
//	 | +------------+ |               | v                         |
//	 |                +------> WAITING_FOR_DEPOSIT ---------------+
//	 |           virtual account                  overdue, cancel
//	 |
//	 +--> EXPIRED   its time ran out
//	 +--> RELEASED  it was given back
//
// An administrator's HOLD becomes DONE at once when it is registered without
// payment, and goes from there to CANCELED at once, as there is no money to
// return; or it becomes WAITING_FOR_DEPOSIT when a virtual account is issued.
// A partner's reservation begins as DONE, or as CONFLICT when its time was
// already taken; then people must settle it.
//
// HOLD, CONFIRMING, WAITING_FOR_DEPOSIT, DONE and CANCELING are live: they keep
// their room busy.
package booking
