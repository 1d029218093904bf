// Package record is the record of a run: what actors requested and received, the records of the database, the provider
// and the simulated locks, and the faults. It is plain data, so that rules are checked afterwards and tests can plant
// violations.
package record

import "time"

// Record is a whole run.
type Record struct {
	Seed  uint64
	Began time.Time
	Quiet time.Time // no faults from here on
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

	// Read from the database.
	History      []Version // every version of every reservation, oldest first
	Switches     []Switch
	Payments     []Payment
	Refunds      []Refund
	Ledger       []Entry
	Webhooks     []Webhook
	Moves        []Move
	DoorRequests []DoorRequest
	Partner      []PartnerBooking
	Differences  []string // order ids under manual review
	StaffUnlocks []string // requests in the audit log
	AppendOnly   []string // forbidden changes that the database allowed
	Tables       int      // number of tables tested
	LedgerMark   Mark     // of the ledger in the middle of the run, against its end
	Deadlocks    int      // in PostgreSQL's log
	Idle         []Idle

	// From other sources.
	Provider Provider
	Messages []Message
	Pulses   []Pulse
	Bookings []ChannelBooking
	Shared   []string          // branches that the partner also sells
	Zones    map[string]string // time zones by branch; UTC if there is none
	Locked   map[string]bool   // branch/device at the end
	Proof    []ProofRule       // the service's own proof at the end
	Audit    Audit             // the audit log at the end
}

// Audit is what `yeolda audit verify` found.
type Audit struct {
	Entries  int
	Rows     int    // of money, doors and passes that are linked
	Unlinked int    // entries that are not linked yet
	Problem  string // empty: the log and the rows are as they were linked
}

// ProofRule is the result of a rule that the service has checked on its own rows.
type ProofRule struct {
	ID      string
	Checked int
	Found   []string // violations
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

// Margin is the minimum time between two reservations of a room.
const Margin = 10 * time.Minute

// Overlaps reports whether two slots cannot both be sold.
func (s Slot) Overlaps(o Slot) bool {
	return s.Branch == o.Branch && s.Room == o.Room && s.Start.Before(o.End.Add(Margin)) && o.Start.Before(s.End.Add(Margin))
}

// Op is one request about a reservation, with its answer.
type Op struct {
	Kind   string
	Owner  int64 // the purchase to which it belongs; 0: another client's
	Slot   Slot
	To     Slot   // of Relocate
	Order  string // of Confirm
	Amount int
	Call   time.Time
	Return time.Time
	Status int    // HTTP; 0: no answer
	Type   string // errorType of an error
	At     int    // replica
	State  string // of Confirm: the method confirmed
	ID     int64  // reservation, if known
}

// Known reports whether the answer reveals the outcome of the request.
func (o Op) Known() bool { return o.Status > 0 && o.Status < 500 }

// OK reports whether the request succeeded.
func (o Op) OK() bool { return o.Status == 200 }

// Told is a result that a subscriber received.
type Told struct {
	At      time.Time
	Replica int
	HTTP    int    // 0: no answer
	Status  string // SUCCESS, FAILED, TIMEOUT; empty without an event
	PIN     bool
}

// Press is one press of a button, with the results of all its subscribers.
type Press struct {
	Branch, Kind string
	Order        string // of the key's reservation; empty: an administrator, or a wrong key
	WrongKey     bool
	Staff        bool
	Call, Return time.Time
	Status       int
	Type         string
	RequestID    string
	Told         []Told
	Why          string // after FAILED, the code of the answer to why the door does not open; empty: none
}

// Lookup is the availability of rooms that a page showed to a customer.
type Lookup struct {
	Branch       string
	From, Until  time.Time // the requested window
	Call, Return time.Time
	Replica      int
	V1           bool
	Busy         map[int][]time.Time // by room: slots of the lists paid and booking
	Margins      map[int][]time.Time // those of paidMargin and bookingMargin
}

// Forgery is a forged callback or message at the broker.
type Forgery struct {
	Kind   string // callback-wrong-secret, callback-right-secret, grant, ask
	Order  string
	At     time.Time
	Status int
}

// Wrong is an invalid request, with its answer.
type Wrong struct {
	What   string
	Want   []int // accepted rejections
	Status int
}

// Twin is one request at both replicas at the same quiet moment.
type Twin struct {
	What string
	Same bool
	Text string // both answers, if they differ
}

// Probe is a measurement without faults: of an offline branch's answer, or of transactions while the provider hangs.
type Probe struct {
	What string // offline, stall
	Took time.Duration
	OK   bool
}

// PowerCut is a power cut of a branch, and whether its locks were locked right after it.
type PowerCut struct {
	Branch string
	At     time.Time
	Locked bool
}

// Fault is one fault with its duration.
type Fault struct {
	Kind      string
	Target    string
	At, Until time.Time
}

// Version is the state of a reservation from one change to the next.
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
	Key     string // SHA-256, in hexadecimal, of the owner's key that opens doors; "": none
	Deleted bool
	Until   time.Time // of the next change; zero: it is the last version
}

// Switch is a change of a room's availability.
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

// Refund is a refund intent.
type Refund struct {
	Reservation int64
	State       string
	Amount      int
	Created     time.Time
}

// Entry is an entry of our ledger.
type Entry struct {
	ID          int64
	At          time.Time
	Reservation int64
	Order       string
	Kind        string
	Amount      int
	Code        string
}

// Mark is the fingerprint of a part of a table at two times.
type Mark struct {
	Rows   int
	Before string // fingerprints
	After  string
}

// Webhook is a stored callback.
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
	Reservation int64 // 0: an administrator
	Devices     []string
	State       string
	Created     time.Time
	Granted     time.Time // zero: never
	Finished    time.Time
	Detail      string
}

// PartnerBooking is our record of a partner's booking.
type PartnerBooking struct {
	External    string
	Status      string
	Reservation int64
}

// ChannelBooking is the partner's record of the same.
type ChannelBooking struct {
	ID       string
	Slot     Slot
	Canceled bool
	Status   string
}

// Idle is the longest idle transaction at a moment.
type Idle struct {
	At    time.Time
	Took  time.Duration
	Query string
}

// Provider contains the payment provider's records.
type Provider struct {
	Charged, Refunded int
	Calls             []Call
	Foreign           []Call // those for a payment that is not of the key's merchant
	Payments          []ProviderPayment
}

// Call is a request that reached the provider.
type Call struct {
	At             time.Time
	Method, Path   string
	IdempotencyKey string
	Order          string
	Keys           string // the key set of the secret key: widget, api, widget-2, ...
	Status         int    // 0: no answer
}

// ProviderPayment is the provider's record of a payment.
type ProviderPayment struct {
	Key, Order, Status string
	Total, Balance     int
	Approved           time.Time // zero: not paid
	Cancels            []time.Time
	Canceled           int // won
	Account            bool
	Due                time.Time
}

// Message is a message that a customer received.
type Message struct {
	At           time.Time
	To, Template string
	Key          string // SHA-256, in hexadecimal, of the key in it; "": none
}

// Pulse is one actuation of a lock.
type Pulse struct {
	Branch, Device string
	Request        string
	At             time.Time
	Energized      time.Duration
}
