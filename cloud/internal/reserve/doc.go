// Package reserve implements the operations on reservations: those of customers and administrators, and the changes that
// the payment provider and deadlines cause.
//
//	          Hold                    Confirm: request to the provider
//	(nothing) ────▶ HOLD ───────────────▶ CONFIRMING ──────────────▶ DONE ◀────────────┐
//	                 │  ▲   refused, hold kept │  │ virtual account      │  ▲          deposit
//	     Release,    │  └─────────────────────┘  └────▶ WAITING_FOR_DEPOSIT ──────────┘
//	     time passes ▼                                       │   ▲  reversal │
//	          RELEASED, EXPIRED                              │   └───────────┘
//	                                           Cancel, overdue ▼            ▼ Cancel
//	                                                       CANCELING (the key is revoked, the slot is not free)
//	                                                           │ the provider confirms the refund
//	                                                           ▼
//	                                                       CANCELED
//
// Three rules apply to every operation:
//
//   - No transaction is open during a request to the provider. A step commits its intent, sends the request, and commits
//     the result, so after a crash at any instruction the row shows which request to send next.
//   - An unknown outcome is not a failure. A payment ends only with a final answer from the provider.
//   - A captured payment is completed. It is refunded only if the slot is no longer available or the amount is wrong.
package reserve
