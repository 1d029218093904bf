// Package access opens doors: for the guest whose key is valid now, and for staff.
//
// An unlock involves three parties, each of which may disappear at any moment: the person at the door, the cloud and the
// agent of the branch. It is one row of door_request, and every decision is one statement on that row, so that any replica
// may take any step:
//
//	            claim, reservation valid now             all doors reported
//	PENDING ─────────────────────────────────► GRANTED ─────────────────────► SUCCESS | FAILED
//	   │        (younger than 2.5 s)               │
//	   │ no claim within 2.5 s                     │ no report within 7 s
//	   │ claim denied, branch offline              ├────► UNKNOWN
//	   └────► FAILED                               └────► FAILED, if the last attempt with this key was UNKNOWN too
//
// A press whose claim is there already, because the guest's page has announced it, begins in GRANTED.
//
// FAILED discloses the PIN of the door's keypad. A row takes one of the two ways out of PENDING, so a granted request was
// never answered FAILED before, and a request that was answered FAILED is never granted. A granted door that reports
// failed or dropped has spent its nonce. Only the claims and reports of the branch's active agent count, and a report must
// have the granted nonce. Package protocol describes the agent's part.
//
// The memory of a replica is an optimisation: it has the asks to repeat for the requests it accepted, and its
// subscribers. If a replica dies, another one ends its requests.
package access
