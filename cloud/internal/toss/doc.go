// Package toss speaks to Toss Payments, core API v1.
//
// It exists so that the rest of the service sees three things only: a payment
// as the provider holds it, a short list of error classes, and the promise that
// an answer which did not arrive is never mistaken for a refusal. Money rules
// (what to charge, when to refund, what to do with an unknown outcome) live
// with the caller.
//
// The states of a payment at the provider:
//
//	READY ──authenticated──▶ IN_PROGRESS ──confirm──▶ DONE ──cancel──▶ CANCELED
//	  │                        │    │                  ▲ │             PARTIAL_CANCELED
//	  │ 30 min                 │    │ confirm          │ │ bank reversal
//	  ▼                        │    │ (가상계좌)       │ ▼
//	EXPIRED ◀───10 min─────────┘    └────────▶ WAITING_FOR_DEPOSIT ──▶ CANCELED, EXPIRED
//	                           └─refused─▶ ABORTED
//
// The machine is not one-way (a deposit can be reversed), so a caller acts on
// what [Client.Payment] or [Client.PaymentByOrder] says now and on nothing it
// remembers.
//
// Idempotency: the provider remembers the first answer to an Idempotency-Key for
// 15 days, error answers included, and does not compare bodies. A key therefore
// belongs to one attempt of one order. Send the same key again after an
// [Unknown] outcome; take a new one after any other error.
package toss
