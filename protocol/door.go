package protocol

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The limits of one unlock.
const (
	// ClaimLimit is the maximum age of a request whose claim is granted, measured by the cloud.
	ClaimLimit = 2500 * time.Millisecond
	// GrantAge is the maximum monotonic time between the agent's claim and the moment it drives the line.
	GrantAge = 1500 * time.Millisecond
	// ConfirmLimit is how long the agent waits for the read-back and the sense line before the drive counts as failed.
	ConfirmLimit = 300 * time.Millisecond
	// RepeatInterval is how often the cloud repeats an ask or a command without an answer. A repeated ask triggers claim and
	// grant again.
	RepeatInterval = 400 * time.Millisecond
	// ResultTTL is how long the agent keeps a result for repeated asks.
	ResultTTL = 60 * time.Second

	// DefaultPulse, MinPulse and MaxPulse bound how long a line is driven. No pulse is shorter than ConfirmLimit.
	DefaultPulse = 3 * time.Second
	MinPulse     = 500 * time.Millisecond
	MaxPulse     = 10 * time.Second
)

// MaxDoors bounds the doors of one request.
const MaxDoors = 16

const maxDetail = 240

// DoorKind distinguishes the entrance doors of a branch from the doors of its rooms.
type DoorKind string

// The kinds of doors.
const (
	DoorFront DoorKind = "front"
	DoorRoom  DoorKind = "room"
)

// Device names a door: front_1, room_3. The number is the room's number, or counts the front doors from 1.
func (k DoorKind) Device(number string) string { return string(k) + "_" + number }

// ParseDevice splits a device name into its kind and number.
func ParseDevice(device string) (kind DoorKind, number string, err error) {
	name, number, _ := strings.Cut(device, "_")
	kind = DoorKind(name)
	if kind != DoorFront && kind != DoorRoom {
		return "", "", fmt.Errorf("device %q is neither front_<n> nor room_<n>", device)
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != number {
		return "", "", fmt.Errorf("device %q has no valid number", device)
	}
	return kind, number, nil
}

func checkDoors(doors []string) error {
	if len(doors) == 0 || len(doors) > MaxDoors {
		return fmt.Errorf("doors contains %d devices, want 1 to %d", len(doors), MaxDoors)
	}
	for i, device := range doors {
		if _, _, err := ParseDevice(device); err != nil {
			return err
		}
		for _, earlier := range doors[:i] {
			if earlier == device {
				return fmt.Errorf("doors contains %s more than once", device)
			}
		}
	}
	return nil
}

// NewNonce returns 128 random bits in base64url without padding (22 characters).
func NewNonce() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func checkNonce(nonce string) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(nonce)
	if err != nil || len(b) != 16 || len(nonce) != 22 {
		return errors.New("nonce is not 128 bits in base64url")
	}
	return nil
}

// Ask announces that doors are to be opened. It carries no authority.
type Ask struct {
	RequestID string   `json:"requestId"` // UUID
	Doors     []string `json:"doors"`     // device names
}

// Claim requests the authority to drive the doors of a request. An agent claims only if it has all of the doors.
type Claim struct {
	RequestID string `json:"requestId"`
	Nonce     string `json:"nonce"` // see NewNonce
}

// Grant is the authority to drive each of the doors once. It is void without a valid signature.
type Grant struct {
	Branch    string   `json:"branch"`
	RequestID string   `json:"requestId"`
	Nonce     string   `json:"nonce"` // of the claim it answers
	Doors     []string `json:"doors"`
	PulseMs   uint32   `json:"pulseMs"`
	Signature string   `json:"signature"` // Ed25519, base64url; see Sign
}

// Pulse is how long the lines are to be driven.
func (g Grant) Pulse() time.Duration { return time.Duration(g.PulseMs) * time.Millisecond }

// Deny has the agent discard a claim. If it is lost, the nonce expires anyway.
type Deny struct {
	RequestID string `json:"requestId"`
	Nonce     string `json:"nonce"`
	Reason    string `json:"reason"` // for logs
}

// Outcome is the result of a grant at one door.
type Outcome string

// The outcomes.
const (
	// Opened: the line was driven and read back, and the sense line confirmed it where one is fitted.
	Opened Outcome = "opened"
	// Failed: the agent knows that the door is not open. The line is idle again.
	Failed Outcome = "failed"
	// Dropped: the grant came too late for its nonce. The agent knows that it did not drive the line with this nonce and
	// never will: the nonce is spent.
	Dropped Outcome = "dropped"
	// Unknown: the agent does not have the nonce, because it restarted after its claim, so it cannot know whether the line
	// was driven. The cloud does not decide the request by it.
	Unknown Outcome = "unknown"
)

// Result is the only outcome of a grant at a door. It is sent as soon as it is known, while the pulse of an opened door is
// still in progress: EnergizedMs is the time driven so far, or the total time if the drive failed. The telemetry event
// released reports the length of the whole pulse.
type Result struct {
	RequestID   string  `json:"requestId"`
	Nonce       string  `json:"nonce,omitempty"` // of the grant; missing from agents of the previous release
	Device      string  `json:"device"`
	Outcome     Outcome `json:"outcome"`
	Detail      string  `json:"detail"` // for logs and staff; empty when there is nothing to add
	EnergizedMs uint32  `json:"energizedMs"`
}

// Kind implements Message.
func (Ask) Kind() Kind { return KindDoorAsk }

// Kind implements Message.
func (Claim) Kind() Kind { return KindDoorClaim }

// Kind implements Message.
func (Grant) Kind() Kind { return KindDoorGrant }

// Kind implements Message.
func (Deny) Kind() Kind { return KindDoorDeny }

// Kind implements Message.
func (Result) Kind() Kind { return KindDoorResult }

// Validate implements Message.
func (m Ask) Validate() error {
	return errors.Join(checkRequestID(m.RequestID), checkDoors(m.Doors))
}

// Validate implements Message.
func (m Claim) Validate() error {
	return errors.Join(checkRequestID(m.RequestID), checkNonce(m.Nonce))
}

// Validate checks the form of a grant. Verify checks the signature.
func (m Grant) Validate() error {
	var err error
	if !ValidBranch(m.Branch) {
		err = errors.New("branch is not a branch code")
	}
	if p := m.Pulse(); p < MinPulse || p > MaxPulse {
		err = errors.Join(err, fmt.Errorf("pulseMs %d is not within %v to %v", m.PulseMs, MinPulse, MaxPulse))
	}
	if len(m.Signature) != signatureLen {
		err = errors.Join(err, fmt.Errorf("signature is not %d characters long", signatureLen))
	}
	return errors.Join(err, checkRequestID(m.RequestID), checkNonce(m.Nonce), checkDoors(m.Doors))
}

// Validate implements Message.
func (m Deny) Validate() error {
	return errors.Join(checkRequestID(m.RequestID), checkNonce(m.Nonce), checkText("reason", m.Reason, maxDetail, false))
}

// Validate implements Message.
func (m Result) Validate() error {
	var err error
	switch m.Outcome {
	case Opened, Failed, Dropped, Unknown:
	default:
		err = fmt.Errorf("outcome %q is unknown", m.Outcome)
	}
	if m.Nonce != "" {
		err = errors.Join(err, checkNonce(m.Nonce))
	}
	_, _, deviceErr := ParseDevice(m.Device)
	return errors.Join(err, deviceErr, checkRequestID(m.RequestID), checkText("detail", m.Detail, maxDetail, false))
}
