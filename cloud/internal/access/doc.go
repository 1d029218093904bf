// Package access opens doors: for the guest whose key is valid now, and for staff.
//
// An unlock is a conversation between three parties who may each vanish at any moment: the person at the door, the cloud
// and the agent of the branch. It is one row of door_request, and every decision is one statement on that row, so that
// any replica may take any step:
//
//	            claim, reservation holds now             all doors reported
//	PENDING ─────────────────────────────────► GRANTED ─────────────────────► SUCCESS | FAILED
//	   │        (younger than 2.5 s)               │
//	   │ no claim within 2.5 s                     │ no report within 7 s
//	   │ claim denied, branch known offline        ├────► UNKNOWN
//	   └────► FAILED                               └────► FAILED, if the last try with this key was UNKNOWN too
//
// FAILED comes with the PIN of the door's keypad. PENDING has two exits and a row takes one of them, therefore no door
// that is granted was ever answered FAILED before, and no door that was answered FAILED is granted afterwards. A granted
// door that reports failed or dropped has spent its nonce. How the agent keeps its part is in package protocol.
//
// What a replica keeps in memory only makes things faster: the asks it repeats for the requests it accepted, and the
// people that wait at it. If it dies, another one ends its requests.
package access
