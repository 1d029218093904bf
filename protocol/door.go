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
	// ClaimLimit is how old a request may be when its claim is granted, measured by the cloud.
	ClaimLimit = 2500 * time.Millisecond
	// GrantAge is how much monotonic time may pass between the agent's claim and the moment it drives the line.
	GrantAge = 1500 * time.Millisecond
	// ConfirmLimit is how long the agent waits for the read-back and the sense line before it calls the drive failed.
	ConfirmLimit = 300 * time.Millisecond
	// RepeatInterval is how often the cloud repeats an ask or a command that has no answer yet. A repeated ask brings claim
	// and grant again.
	RepeatInterval = 400 * time.Millisecond
	// ResultTTL is how long the agent keeps a result in order to repeat it.
	ResultTTL = 60 * time.Second

	// DefaultPulse, MinPulse and MaxPulse bound how long a line stays driven. No pulse is shorter than its confirmation.
	DefaultPulse = 3 * time.Second
	MinPulse     = 500 * time.Millisecond
	MaxPulse     = 10 * time.Second
)

// MaxDoors bounds the doors of one request.
const MaxDoors = 16

const maxDetail = 240

// DoorKind tells the branch's entrance doors from the doors of its rooms.
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
		return "", "", fmt.Errorf("device %q has no number", device)
	}
	return kind, number, nil
}

func checkDoors(doors []string) error {
	if len(doors) == 0 || len(doors) > MaxDoors {
		return fmt.Errorf("doors holds %d devices, want 1 to %d", len(doors), MaxDoors)
	}
	for i, device := range doors {
		if _, _, err := ParseDevice(device); err != nil {
			return err
		}
		for _, earlier := range doors[:i] {
			if earlier == device {
				return fmt.Errorf("doors holds %s twice", device)
			}
		}
	}
	return nil
}

// NewNonce makes the 128 random bits of a claim, base64url without padding (22 characters).
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

// Ask announces that somebody wants these doors open. It carries no authority.
type Ask struct {
	RequestID string   `json:"requestId"` // UUID
	Doors     []string `json:"doors"`     // device names
}

// Claim asks for the authority to drive the doors of a request.
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

// Deny tells the agent to forget a claim. An agent that misses it loses nothing: its nonce ages out.
type Deny struct {
	RequestID string `json:"requestId"`
	Nonce     string `json:"nonce"`
	Reason    string `json:"reason"` // for logs
}

// Outcome is how a door answered.
type Outcome string

// The outcomes.
const (
	// Opened: the line was driven and read back, and the sense line confirmed it where one is fitted.
	Opened Outcome = "opened"
	// Failed: the agent knows that the door is not open. The line is idle again.
	Failed Outcome = "failed"
	// Dropped: the grant could not be used, too old for example. The line was not touched and never will be for this
	// request: the nonce is spent.
	Dropped Outcome = "dropped"
)

// Result is the one and only outcome of a request at a door. It is sent as soon as it is known, while an opened door's
// pulse still runs: EnergizedMs is how long the line had been driven at that moment, all in all if it failed. The length
// of an opened door's whole pulse follows as the telemetry event released.
type Result struct {
	RequestID   string  `json:"requestId"`
	Device      string  `json:"device"`
	Outcome     Outcome `json:"outcome"`
	Detail      string  `json:"detail"` // for logs and staff; empty when there is nothing to say
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

// Validate checks the form of a grant. Whether it is genuine is for Verify.
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
	case Opened, Failed, Dropped:
	default:
		err = fmt.Errorf("outcome %q is unknown", m.Outcome)
	}
	_, _, deviceErr := ParseDevice(m.Device)
	return errors.Join(err, deviceErr, checkRequestID(m.RequestID), checkText("detail", m.Detail, maxDetail, false))
}
