// Package toss is a client for Toss Payments, core API v1.
//
// It returns payments as the provider stores them, and a short list of error
// classes. A missing or unreadable response is never reported as a refusal. The
// rules about money (what to charge, when to refund, how to handle an unknown
// outcome) belong to the caller.
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
// A payment can return to an earlier state (a deposit can be reversed), so a
// caller must act on the current result of [Client.Payment] or
// [Client.PaymentByOrder], not on a stored one.
//
// Idempotency: the provider stores the first response to an Idempotency-Key for
// 15 days, including errors, and does not compare bodies. A key therefore
// belongs to one attempt of one order. After an [Unknown] outcome, send the same
// key again; after any other error, use a new one.
package toss
