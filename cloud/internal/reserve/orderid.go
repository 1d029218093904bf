package reserve

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// An order id is unguessable and contains, sealed, what is needed to rebuild its reservation if the database loses it: the
// provider keeps the order id of every payment, whichever page or program paid it (docs/specification.md, Payment provider).
// Its 64 characters are the provider's maximum, in the provider's alphabet (A-Z a-z 0-9 - _).
// The seal names the legal entity whose keys read the payment.
const orderPurpose = "order"

// orderPurposeOf returns the purpose of the seal of an entity's orders.
func orderPurposeOf(entity string) string {
	if entity == "" {
		return orderPurpose
	}
	return orderPurpose + ":" + entity
}

// ordered is the content of an order id.
type ordered struct {
	Entity   string // code of the legal entity; empty: that of the settings
	Room     booking.RoomID
	Times    booking.Interval
	Mobile   string // of at most 15 digits; longer numbers are left out
	Language string
	Source   booking.Source
}

// errForeignOrder is returned for an order id that was not created with one of our keys, or whose key is deleted.
var errForeignOrder = errors.New("reserve: the order id is not ours")

// The layout of an order: flags, 3 bytes room, 3 bytes start and 1 byte length in slots, 7 bytes mobile.
const (
	orderSize    = 15
	flagAdmin    = 1
	flagEnglish  = 2
	flagForeign  = 4 // the number begins with a country code
	maxRoomID    = 1<<24 - 1
	mobileDigits = 15
)

// sealOrder returns the order id of a reservation under a contact.
func sealOrder(keys *seal.Keyring, o ordered) string {
	plain := make([]byte, orderSize)
	if o.Source == booking.Admin {
		plain[0] |= flagAdmin
	}
	if o.Language == "en" {
		plain[0] |= flagEnglish
	}
	if strings.HasPrefix(strings.TrimSpace(o.Mobile), "+") && !strings.HasPrefix(booking.NormalizePhone(o.Mobile), "0") {
		plain[0] |= flagForeign
	}
	if o.Room <= maxRoomID { // otherwise 0, which is not a room
		put24(plain[1:], uint32(o.Room)) //nolint:gosec // ids are positive
	}
	put24(plain[4:], uint32(o.Times.Start.Unix()/int64(booking.SlotLength/time.Second))) //nolint:gosec // until the year 2288
	plain[7] = byte(o.Times.Length() / booking.SlotLength)                               //nolint:gosec // at most 30
	put56(plain[8:], mobileNumber(o.Mobile))
	return base64.RawURLEncoding.EncodeToString(keys.Seal(orderPurposeOf(o.Entity), plain))
}

// openOrder returns the content of an order id of one of the entities that was sealed with one of the keys, or
// errForeignOrder.
func openOrder(keys *seal.Keyring, id string, entities []string) (ordered, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return ordered{}, errForeignOrder
	}
	for _, entity := range entities {
		if plain, err := keys.Open(orderPurposeOf(entity), sealed); err == nil && len(plain) == orderSize {
			return parseOrder(entity, plain), nil
		}
	}
	return ordered{}, errForeignOrder
}

func parseOrder(entity string, plain []byte) ordered {
	start := time.Unix(int64(get24(plain[4:]))*int64(booking.SlotLength/time.Second), 0)
	o := ordered{
		Entity: entity, Room: booking.RoomID(get24(plain[1:])), Times: booking.Interval{Start: start, End: start.Add(time.Duration(plain[7]) * booking.SlotLength)},
		Mobile: mobileText(get56(plain[8:])), Language: "ko", Source: booking.Customer,
	}
	if plain[0]&flagEnglish != 0 {
		o.Language = "en"
	}
	if plain[0]&flagForeign != 0 && o.Mobile != "" {
		o.Mobile = "+" + o.Mobile
	}
	if plain[0]&flagAdmin != 0 {
		o.Source = booking.Admin
	}
	return o
}

// keySet returns the provider's key set under which an order is paid.
func (o ordered) keySet() toss.KeySet {
	if o.Source == booking.Admin {
		return toss.API.Of(o.Entity)
	}
	return toss.Widget.Of(o.Entity)
}

// mobileNumber encodes the digits of a phone number, with a leading 1 that keeps its zeros; 0: none.
func mobileNumber(mobile string) uint64 {
	digits := booking.NormalizePhone(mobile)
	if digits == "" || len(digits) > mobileDigits || strings.Trim(digits, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseUint("1"+digits, 10, 56)
	if err != nil {
		return 0
	}
	return n
}

func mobileText(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)[1:]
}

func put24(b []byte, n uint32) { b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n) } //nolint:gosec // the low 24 bits
func get24(b []byte) uint32    { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func put56(b []byte, n uint64) {
	var full [8]byte
	binary.BigEndian.PutUint64(full[:], n)
	copy(b, full[1:])
}

func get56(b []byte) uint64 {
	var full [8]byte
	copy(full[1:], b[:7])
	return binary.BigEndian.Uint64(full[:])
}
