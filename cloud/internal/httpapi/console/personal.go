package console

import (
	"net/http"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// contact reads {contact}: the digits of a phone number, or an e-mail address.
func contact(r *http.Request) (string, error) {
	var body struct {
		Contact *string `json:"contact"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return "", err
	}
	text, err := wire.Text("contact", body.Contact, 100)
	if err != nil {
		return "", err
	}
	if strings.Contains(text, "@") {
		address, err := wire.Email("contact", &text) // rows are found by a part of their text: "@" would be in those of others
		return booking.NormalizeEmail(address), err
	}
	digits := booking.NormalizePhone(text)
	if len(digits) < 9 {
		return "", wire.Malformed("contact")
	}
	return digits, nil
}

// ExportPerson serves POST /v2/admin/personal-data/export (headquarters): everything that is kept about one guest.
func (c *Console) ExportPerson(w http.ResponseWriter, r *http.Request) error {
	contact, err := contact(r)
	if err != nil {
		return err
	}
	data, err := c.Backoffice.PersonalData(r.Context(), contact, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, data)
}

// ErasePerson serves POST /v2/admin/personal-data/erase (headquarters): name and contact of one guest are removed from every
// reservation that is over.
func (c *Console) ErasePerson(w http.ResponseWriter, r *http.Request) error {
	contact, err := contact(r)
	if err != nil {
		return err
	}
	erased, kept, err := c.Backoffice.Erase(r.Context(), contact, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Reservations int64 `json:"reservations"`
		Kept         int64 `json:"kept"`
	}{erased, kept})
}
