package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// partnerSkew is the accepted clock difference of a signed channel request (docs/specification.md, Partner channels 2).
const partnerSkew = 5 * time.Minute

// Booking is a booking made at the partner channel. The channel sends each change to the service with the same id and a
// higher sequence number, and stores the service's decision.
type Booking struct {
	ID       string    `json:"id"`
	Branch   string    `json:"branch"`
	Room     int       `json:"room"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"` // the real end
	Name     string    `json:"name"`
	Phone    string    `json:"mobileNum"`
	Seq      int       `json:"seq"`
	Canceled bool      `json:"canceled"`
	Status   string    `json:"status"` // the service's answer, such as ACCEPTED or CONFLICT; PENDING until it arrives
}

// Block is a time that the service has blocked at the partner channel.
type Block struct {
	ID     string    `json:"id"`
	Branch string    `json:"branch"`
	Room   int       `json:"room"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
}

// ErrNoSuchBooking is returned if the channel has no live booking with the id.
var ErrNoSuchBooking = errors.New("no booking of that id")

// Book creates a guest's booking at the partner channel. It ignores blocks, because a booking may be made before a
// block arrives; the service has to handle this race.
func (s *Sandbox) Book(b Booking) (Booking, *Delivery, error) {
	if b.Branch == "" || b.Room < 1 {
		return Booking{}, nil, errors.New("branch and room are required")
	}
	if !b.End.After(b.Start) {
		return Booking{}, nil, errors.New("the end must lie after the start")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.ID = "SB-" + strings.ToUpper(randomHex(6))
	b.Start, b.End = b.Start.In(kst), b.End.In(kst)
	b.Seq, b.Canceled, b.Status = 1, false, "PENDING"
	kept := &b
	s.state.Bookings = append(s.state.Bookings, kept)
	s.state.changedBooking(kept)
	d := s.announce("booking.created", kept)
	s.keep()
	return b, d, nil
}

// CancelBooking cancels a booking as its guest.
func (s *Sandbox) CancelBooking(id string) (*Delivery, error) {
	return s.changeBooking(id, "booking.cancelled", func(b *Booking) { b.Canceled = true })
}

// MoveBooking changes the time of a booking as its guest.
func (s *Sandbox) MoveBooking(id string, start, end time.Time) (*Delivery, error) {
	if !end.After(start) {
		return nil, errors.New("the end must lie after the start")
	}
	return s.changeBooking(id, "booking.updated", func(b *Booking) { b.Start, b.End = start.In(kst), end.In(kst) })
}

func (s *Sandbox) changeBooking(id, event string, change func(*Booking)) (*Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.state.Bookings, func(b *Booking) bool { return b.ID == id && !b.Canceled })
	if i < 0 {
		return nil, ErrNoSuchBooking
	}
	b := s.state.Bookings[i]
	change(b)
	b.Seq++
	b.Status = "PENDING"
	s.state.changedBooking(b)
	d := s.announce(event, b)
	s.keep()
	return d, nil
}

// Bookings returns the bookings made at the partner channel, oldest first.
func (s *Sandbox) Bookings() []Booking {
	s.mu.Lock()
	defer s.mu.Unlock()
	bookings := make([]Booking, 0, len(s.state.Bookings))
	for _, b := range s.state.Bookings {
		bookings = append(bookings, *b)
	}
	return bookings
}

// Blocks returns the service's blocks at the partner channel, oldest first.
func (s *Sandbox) Blocks() []Block {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := make([]Block, 0, len(s.state.Blocks))
	for _, b := range s.state.Blocks {
		blocks = append(blocks, *b)
	}
	return blocks
}

// announce sends a booking event to the service. The caller holds s.mu.
func (s *Sandbox) announce(event string, b *Booking) *Delivery {
	if s.opts.PartnerURL == "" {
		return undelivered()
	}
	return s.deliver(&outgoing{
		Kind: channelEventKind, About: b.ID, URL: s.opts.PartnerURL,
		Body: mustJSON(map[string]any{
			"type": event, "externalId": b.ID, "listingId": ListingID(b.Branch, b.Room), "seq": b.Seq,
			"start": b.Start, "end": b.End, "price": 0,
			"customer": map[string]string{"name": b.Name, "phone": b.Phone},
		}),
	})
}

// decided stores the service's answer to a booking event.
func (s *Sandbox) decided(bookingID string, r Reply) {
	var answer struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(r.Body, &answer) != nil || answer.Status == "" {
		answer.Status = strconv.Itoa(r.Status)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.state.Bookings {
		if b.ID == bookingID {
			b.Status = answer.Status
			s.state.changedBooking(b)
		}
	}
	s.keep()
}

// ListingID returns the channel's id of a room, such as "gangnam-2".
func ListingID(branch string, room int) string { return branch + "-" + strconv.Itoa(room) }

func parseListingID(id string) (branch string, room int, err error) {
	i := strings.LastIndexByte(id, '-')
	if i < 1 {
		return "", 0, fmt.Errorf("listing %q is not <branch>-<room>", id)
	}
	room, err = strconv.Atoi(id[i+1:])
	if err != nil || room < 1 {
		return "", 0, fmt.Errorf("listing %q is not <branch>-<room>", id)
	}
	return id[:i], room, nil
}

// receiveBlock handles POST /partner/v1/blocks, the channel's side of the gateway: block.created and block.cancelled,
// signed like events in the other direction. The service identifies each block by its own blockId; repeating a block
// or cancelling an unknown one is not an error.
func (s *Sandbox) receiveBlock(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeJSON(w, http.StatusRequestEntityTooLarge, map[string]string{"status": "TOO_LARGE"})
		return
	}
	if err := s.checkPartner(r.Header, body); err != nil {
		s.log.Warn("sandbox: channel request refused", "error", err)
		writeJSON(w, http.StatusUnauthorized, map[string]string{"status": "UNAUTHORIZED", "message": err.Error()})
		return
	}
	fault, timedOut := s.meet(TargetChannel, r.Context())
	if timedOut {
		hangUp(w)
		return
	}
	if fault.is(FaultError) {
		e := fault.messageError()
		writeJSON(w, e.status, map[string]string{"status": e.Code, "message": e.Message})
		return
	}
	var in struct {
		Type      string    `json:"type"`
		BlockID   string    `json:"blockId"`
		ListingID string    `json:"listingId"`
		Start     time.Time `json:"start"`
		End       time.Time `json:"end"`
	}
	status, reason := http.StatusOK, ""
	if err := json.Unmarshal(body, &in); err != nil {
		status, reason = http.StatusBadRequest, err.Error()
	} else if in.BlockID == "" {
		status, reason = http.StatusBadRequest, "blockId is required"
	} else if err := s.applyBlock(in.Type, in.BlockID, in.ListingID, in.Start, in.End); err != nil {
		status, reason = http.StatusUnprocessableEntity, err.Error()
	}
	switch {
	case fault.is(FaultDropAfterCommit):
		hangUp(w)
	case status != http.StatusOK:
		writeJSON(w, status, map[string]string{"status": "REJECTED", "message": reason})
	default:
		writeJSON(w, status, map[string]string{"status": "ACCEPTED", "blockId": in.BlockID})
	}
}

func (s *Sandbox) applyBlock(event, id, listing string, start, end time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.state.Blocks, func(b *Block) bool { return b.ID == id })
	switch event {
	case "block.cancelled":
		if i >= 0 {
			s.state.Blocks = slices.Delete(s.state.Blocks, i, i+1)
			s.state.unsaved.Blocks = append(s.state.unsaved.Blocks, Block{ID: id})
		}
	case "block.created":
		branch, room, err := parseListingID(listing)
		if err != nil {
			return err
		}
		if !end.After(start) {
			return errors.New("the end must lie after the start")
		}
		block := &Block{ID: id, Branch: branch, Room: room, Start: start.In(kst), End: end.In(kst)}
		if i >= 0 {
			s.state.Blocks[i] = block
		} else {
			s.state.Blocks = append(s.state.Blocks, block)
		}
		s.state.unsaved.Blocks = append(s.state.unsaved.Blocks, *block)
	default:
		return fmt.Errorf("unknown event %q", event)
	}
	s.keep()
	return nil
}

// signPartner writes identity, time and signature of a channel message into h.
func (s *Sandbox) signPartner(h http.Header, body []byte) {
	timestamp := strconv.FormatInt(s.now().Unix(), 10)
	h.Set("X-Partner-Id", s.opts.PartnerID)
	h.Set("X-Partner-Timestamp", timestamp)
	h.Set("X-Partner-Signature", partnerSignature(s.opts.PartnerSecret, timestamp, body))
}

// checkPartner verifies the headers written by signPartner.
func (s *Sandbox) checkPartner(h http.Header, body []byte) error {
	if h.Get("X-Partner-Id") != s.opts.PartnerID {
		return errors.New("unknown partner")
	}
	timestamp := h.Get("X-Partner-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return errors.New("no timestamp")
	}
	if d := s.now().Sub(time.Unix(seconds, 0)); d > partnerSkew || d < -partnerSkew {
		return errors.New("timestamp out of range")
	}
	want := partnerSignature(s.opts.PartnerSecret, timestamp, body)
	if !hmac.Equal([]byte(want), []byte(h.Get("X-Partner-Signature"))) {
		return errors.New("wrong signature")
	}
	return nil
}

// partnerSignature returns v1=<hex HMAC-SHA256(secret, timestamp "." body)> (docs/specification.md, Partner channels 2).
func partnerSignature(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}
