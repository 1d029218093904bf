// Package booking holds the domain types and the rules about them: branches and rooms, slots and intervals, prices,
// opening hours, reservations.
//
// Every rule about time, price and calendar is defined here, so that it can be read on one page and tested without a
// database, a clock or a network. The package does no I/O, reads no clock (rules take now), ignores the time zone of the
// process (rules take the zone of the branch), and imports only the standard library. Packages reserve and access change
// these types.
//
// # Time
//
// An [Interval] is half open and ends at the real end, the moment at which the guest leaves. It occupies its room for a
// margin more ([Interval.Occupied]), so two reservations of a room are always at least [Room.Margin] apart, here ten minutes:
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
//	 +--> EXPIRED   the hold ran out
//	 +--> RELEASED  the customer or an administrator released it
//
// An administrator's HOLD becomes DONE when it is registered without payment, and CANCELED when that is cancelled, because
// there is no money to refund. If a virtual account is issued for it, it becomes WAITING_FOR_DEPOSIT. A partner's
// reservation starts as DONE, or as CONFLICT if its time was already taken; staff must then resolve the conflict.
//
// HOLD, CONFIRMING, WAITING_FOR_DEPOSIT, DONE and CANCELING are live: they occupy their room.
package booking
