// Package reserve holds the verbs of booking: what customers, administrators, the payment provider and time do to a
// reservation.
//
//	          Hold                    Confirm: the provider is asked
//	(nothing) ────▶ HOLD ───────────────▶ CONFIRMING ──────────────▶ DONE ◀────────────┐
//	                 │  ▲   refused, hold kept │  │ virtual account      │  ▲          deposit
//	     Release,    │  └─────────────────────┘  └────▶ WAITING_FOR_DEPOSIT ──────────┘
//	     time passes ▼                                       │   ▲  reversal │
//	          RELEASED, EXPIRED                              │   └───────────┘
//	                                           Cancel, overdue ▼            ▼ Cancel
//	                                                       CANCELING (the key is dead, the slot is not free)
//	                                                           │ the provider says the money is out
//	                                                           ▼
//	                                                       CANCELED
//
// Three rules hold everywhere. No transaction is open while the provider is asked: a step commits what it is about to
// do, asks, and commits what came of it, so that a crash at any instruction leaves a row that says what to ask next.
// Unknown is never failed: only what the provider says about a payment ends it. And money moves forward: what the
// provider has captured is finished here, and refunded only when the slot is gone or the amount is wrong.
package reserve
