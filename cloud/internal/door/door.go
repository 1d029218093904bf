// Package door defines the request to open doors: its states and what a request, its result and a report consist of.
// Package access decides about requests, package postgres stores them.
package door

import (
	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// State is the state of a request.
type State string

// The states. Success, Failed and Unknown are final.
//
//	PENDING ──► GRANTED ──► SUCCESS | FAILED | UNKNOWN
//	   └──► FAILED
const (
	Pending State = "PENDING"
	Granted State = "GRANTED"
	Success State = "SUCCESS"
	Failed  State = "FAILED"
	Unknown State = "UNKNOWN" // granted, but the agent never reported a result
)

// Final reports whether the state can no longer change.
func (s State) Final() bool { return s == Success || s == Failed || s == Unknown }

// Customer is RequestedBy of a request made with a doorlockKey.
const Customer = "customer"

// Request is one press of an unlock button.
type Request struct {
	ID          uuid.UUID
	BranchID    booking.BranchID
	Branch      string                 // code
	Reservation *booking.ReservationID // nil: not a customer's
	RequestedBy string                 // Customer, admin:<login id>, discord:<id>
	Kind        string                 // front, room
	Device      string                 // of the result: front, room_<n>
	Devices     []string               // the locks to drive
	State       State
}

// Outcome is an agent's report about one door.
type Outcome struct {
	Outcome     string `json:"outcome"`
	Detail      string `json:"detail,omitempty"`
	EnergizedMs uint32 `json:"energizedMs"`
}

// Ended is a request that was ended because of its age.
type Ended struct {
	ID    uuid.UUID
	State State
}
