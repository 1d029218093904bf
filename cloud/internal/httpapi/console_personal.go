package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// person reads {contact}: a phone number or an e-mail address, as reservations are found by.
func person(r *http.Request) (string, error) {
	var body struct {
		Contact *string `json:"contact"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return "", err
	}
	contact, err := wire.Text("contact", body.Contact, 100)
	if err != nil {
		return "", err
	}
	if strings.Contains(contact, "@") {
		return booking.NormalizeEmail(contact), nil
	}
	digits := booking.NormalizePhone(contact)
	if len(digits) < 9 {
		return "", wire.Malformed("contact")
	}
	return digits, nil
}

// pseudonym names a person in the audit log, which never forgets, without naming him: enough to answer whether a
// request was carried out to whoever knows the contact.
func pseudonym(contact string) string {
	sum := sha256.Sum256([]byte("yeolda person " + contact))
	return hex.EncodeToString(sum[:8])
}

// exportPerson is POST /v2/admin/personal-data/export (head quarters): all that is kept about one person.
func (a *API) exportPerson(w http.ResponseWriter, r *http.Request) error {
	contact, err := person(r)
	if err != nil {
		return err
	}
	data, err := postgres.PersonalData(r.Context(), a.DB.Pool, contact)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return a.done(w, r, "", "personal.export", pseudonym(contact), nil, data)
}

// erasePerson is POST /v2/admin/personal-data/erase (head quarters): name and contact of one person disappear from all
// that is over. What is still to come needs them and stays; cancel it first.
func (a *API) erasePerson(w http.ResponseWriter, r *http.Request) error {
	contact, err := person(r)
	if err != nil {
		return err
	}
	var erased, kept int64
	err = a.DB.InTx(r.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		erased, kept, err = postgres.Erase(ctx, tx, contact, a.Reserve.Queue.NoVariables(), now)
		return err
	})
	if err != nil {
		return err
	}
	return a.done(w, r, "", "personal.erase", pseudonym(contact), map[string]int64{"reservations": erased, "kept": kept}, struct {
		Reservations int64 `json:"reservations"`
		Kept         int64 `json:"kept"`
	}{erased, kept})
}
