// Package record is what was seen of a run, by whom: what actors asked and were told, what the database, the provider and
// the simulated locks have written down, and what was broken when. It is plain data: rules are held against it afterwards,
// and a test can plant into it whatever must not be.
package record

import "time"

// Record is a whole run.
type Record struct {
	Seed  uint64
	Began time.Time
	Quiet time.Time // from here on nothing is broken
	Ended time.Time

	// Seen by actors.
	Ops      []Op
	Presses  []Press
	Lookups  []Lookup
	Forged   []Forgery
	Wrong    []Wrong
	Twins    []Twin
	Probes   []Probe
	PowerCut []PowerCut

	Faults []Fault

	// Written down by the database.
	History      []Version // every version of every reservation, oldest first
	Switches     []Switch
	Payments     []Payment
	Refunds      []Refund
	Ledger       []Entry
	Webhooks     []Webhook
	Moves        []Move
	DoorRequests []DoorRequest
	Partner      []PartnerBooking
	Differences  []string // order ids that a person is asked to look at
	StaffUnlocks []string // requests in the audit log
	AppendOnly   []string // changes that were let through and must not be
	Tables       int      // how many were tried
	LedgerMark   Mark     // of the ledger in the middle of the run, against its end
	Deadlocks    int      // in PostgreSQL's log
	Idle         []Idle

	// By others.
	Provider Provider
	Messages []Message
	Pulses   []Pulse
	Bookings []ChannelBooking
	Shared   []string        // branches that the partner sells too
	Locked   map[string]bool // branch/device at the end
}

// The kinds of Op.
const (
	Take       = "take"        // POST /reservation
	AdminTake  = "admin-take"  // POST /admin/reservation
	Register   = "register"    // POST /payment
	Keep       = "keep"        // POST /admin/payment
	Confirm    = "confirm"     // POST /payment/confirm
	Release    = "release"     // DELETE /reservation
	Cancel     = "cancel"      // POST /payment/cancel
	AdminEnd   = "admin-end"   // DELETE /admin/reservation/{id}
	Relocate   = "relocate"    // PUT /admin/reservation/{id}
	SwitchRoom = "switch-room" // PATCH /admin/machines/{branch}/{room}
	Account    = "account"     // POST /admin/v2/virtual-accounts
)

// Slot is a time in a room. End is the real end.
type Slot struct {
	Branch     string
	Room       int
	Start, End time.Time
}

// Margin lies between two reservations of a room.
const Margin = 10 * time.Minute

// Overlaps reports whether two slots cannot both be sold.
func (s Slot) Overlaps(o Slot) bool {
	return s.Branch == o.Branch && s.Room == o.Room && s.Start.Before(o.End.Add(Margin)) && o.Start.Before(s.End.Add(Margin))
}

// Op is one request about a reservation and its answer.
type Op struct {
	Kind   string
	Owner  int64 // the purchase it belongs to; 0 when it is about somebody else's
	Slot   Slot
	To     Slot   // of Relocate
	Order  string // of Confirm
	Amount int
	Call   time.Time
	Return time.Time
	Status int    // HTTP; 0: no answer came
	Type   string // errorType of a refusal
	At     int    // replica
	State  string // of Confirm: the method that was confirmed
	ID     int64  // reservation, where it is known
}

// Known reports whether an answer tells what came of the request.
func (o Op) Known() bool { return o.Status > 0 && o.Status < 500 }

// OK reports that it was done.
func (o Op) OK() bool { return o.Status == 200 }

// Told is a result that a subscriber got.
type Told struct {
	At      time.Time
	Replica int
	HTTP    int    // 0: no answer
	Status  string // SUCCESS, FAILED, TIMEOUT; empty without an event
	PIN     bool
}

// Press is one press of a button and what everybody was told who asked.
type Press struct {
	Branch, Kind string
	Order        string // of the reservation whose key it is; empty: staff, or a wrong key
	WrongKey     bool
	Staff        bool
	Call, Return time.Time
	Status       int
	Type         string
	RequestID    string
	Told         []Told
}

// Lookup is what a customer was shown of a room on a page: which slots are not free.
type Lookup struct {
	Branch       string
	From, Until  time.Time // the window that was asked for
	Call, Return time.Time
	Replica      int
	V1           bool
	Busy         map[int][]time.Time // by room: slots of the lists paid and booking
	Margins      map[int][]time.Time // those of paidMargin and bookingMargin
}

// Forgery is something made up by an intruder: a callback, or a message at the broker.
type Forgery struct {
	Kind   string // callback-wrong-secret, callback-right-secret, grant, ask
	Order  string
	At     time.Time
	Status int
}

// Wrong is a request that breaks a rule, and the answer.
type Wrong struct {
	What   string
	Want   []int // statuses that refuse it
	Status int
}

// Twin is one question asked at both replicas at the same quiet moment.
type Twin struct {
	What string
	Same bool
	Text string // both answers, when they differ
}

// Probe is a measurement in quiet: of an offline branch's answer, or of transactions under a stalled provider.
type Probe struct {
	What string // offline, stall
	Took time.Duration
	OK   bool
}

// PowerCut is a branch that lost its power, and whether its locks were shut right after.
type PowerCut struct {
	Branch string
	At     time.Time
	Locked bool
}

// Fault is something that was broken.
type Fault struct {
	Kind      string
	Target    string
	At, Until time.Time
}

// Version is a reservation from one change to the next.
type Version struct {
	Seq     int64
	At      time.Time // of the change, before its commit
	ID      int64
	Slot    Slot
	State   string
	Source  string
	Expires time.Time // zero: never
	Order   string
	Amount  int
	Method  string
	Key     string
	Deleted bool
	Until   time.Time // of the next change; zero: it is the last one
}

// Switch is a room being switched on or off.
type Switch struct {
	Branch  string
	Room    int
	At      time.Time
	Enabled bool
}

// Payment is our side of a payment.
type Payment struct {
	Reservation int64
	Key         string
	Total       int
}

// Refund is an intent to give money back.
type Refund struct {
	Reservation int64
	State       string
	Amount      int
	RevokedKey  string
	Created     time.Time
}

// Entry is one of our ledger.
type Entry struct {
	ID          int64
	At          time.Time
	Reservation int64
	Order       string
	Kind        string
	Amount      int
	Code        string
}

// Mark is a part of a table seen at two times.
type Mark struct {
	Rows   int
	Before string // fingerprints
	After  string
}

// Webhook is a callback that was stored.
type Webhook struct {
	Order, Status string
	Received      time.Time
	Applied       bool
}

// Move is a change of room or time.
type Move struct {
	Reservation int64
	At          time.Time
	From, To    Slot
}

// DoorRequest is the row of a press.
type DoorRequest struct {
	ID          string
	Branch      string
	Reservation int64 // 0: staff
	Devices     []string
	State       string
	Created     time.Time
	Granted     time.Time // zero: never
	Finished    time.Time
	Detail      string
}

// PartnerBooking is a booking from outside as we have it.
type PartnerBooking struct {
	External    string
	Status      string
	Reservation int64
}

// ChannelBooking is the same at the partner.
type ChannelBooking struct {
	ID       string
	Slot     Slot
	Canceled bool
	Status   string
}

// Idle is the longest transaction that waited for its program at a moment.
type Idle struct {
	At    time.Time
	Took  time.Duration
	Query string
}

// Provider is the payment provider's books.
type Provider struct {
	Charged, Refunded int
	Calls             []Call
	Payments          []ProviderPayment
}

// Call is a request that reached the provider.
type Call struct {
	At             time.Time
	Method, Path   string
	IdempotencyKey string
	Order          string
	Status         int // 0: it was not answered
}

// ProviderPayment is a payment as the provider has it.
type ProviderPayment struct {
	Key, Order, Status string
	Total, Balance     int
	Approved           time.Time // zero: no money came
	Cancels            []time.Time
	Canceled           int // won
	Account            bool
	Due                time.Time
}

// Message is one that arrived at a customer.
type Message struct {
	At           time.Time
	To, Template string
	Key          string
}

// Pulse is one time that a lock was driven.
type Pulse struct {
	Branch, Device string
	Request        string
	At             time.Time
	Energized      time.Duration
}
