package console

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

type wireMessage struct {
	ID            string  `json:"id"`
	CreatedAt     string  `json:"createdAt"`
	SentAt        *string `json:"sentAt"`
	Template      string  `json:"template"`
	Language      string  `json:"language"`
	To            string  `json:"to"`
	Channel       *string `json:"channel"`
	State         string  `json:"state"`
	Attempt       int     `json:"attempt"`
	Error         *string `json:"error"`
	ReservationID *string `json:"reservationId"`
}

// toWireMessage masks the recipient; the full contact is in the reservation's record.
func toWireMessage(m booking.Message) wireMessage {
	to := maskedMobile(m.Mobile)
	if to == "" {
		to = maskedEmail(m.Email)
	}
	item := wireMessage{
		ID: strconv.FormatInt(m.ID, 10), CreatedAt: *wire.Instant(m.CreatedAt), SentAt: wire.Instant(m.SentAt), Template: m.Template, Language: m.Language,
		To: to, Channel: wire.Nullable(m.Channel), State: m.State, Attempt: m.Attempt, Error: wire.Nullable(m.Error),
	}
	if m.Reservation != 0 {
		item.ReservationID = wire.Nullable(wire.ReservationID(m.Reservation))
	}
	return item
}

// maskedEmail keeps the first letter and the domain of an address.
func maskedEmail(email string) string {
	for i, r := range email {
		if r == '@' && i > 0 {
			first := []rune(email)[0]
			return string(first) + "***" + email[i:]
		}
	}
	return ""
}

// ListMessages serves GET /v2/admin/branches/{branch}/messages?state=&before=&limit=, newest message first.
func (c *Console) ListMessages(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	before, limit, err := wire.Page(r)
	if err != nil {
		return err
	}
	found, err := c.Backoffice.Messages(r.Context(), branch.ID, r.URL.Query().Get("state"), before, limit)
	if err != nil {
		return err
	}
	list := make([]wireMessage, 0, len(found))
	for _, m := range found {
		list = append(list, toWireMessage(m))
	}
	return wire.WriteData(w, map[string]any{"messages": list})
}

// message returns the message of the path and its branch, if that is in the administrator's scope. Messages of no branch
// are in the scope of the headquarters.
func (c *Console) message(r *http.Request) (booking.Message, string, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return booking.Message{}, "", booking.ErrNoMessage
	}
	m, branch, err := c.Backoffice.Message(r.Context(), id)
	if err != nil {
		return m, "", err
	}
	return m, branch, wire.Scope(r, branch)
}

// ShowMessage serves GET /v2/admin/messages/{id}: a message as the guest reads it.
func (c *Console) ShowMessage(w http.ResponseWriter, r *http.Request) error {
	m, _, err := c.message(r)
	if err != nil {
		return err
	}
	text, err := c.Backoffice.MessageText(r.Context(), m, wire.Principal(r).MayOpen(), actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		wireMessage
		Subject *string `json:"subject"`
		Text    string  `json:"text"`
	}{toWireMessage(m), wire.Nullable(text.Subject), text.Body})
}

// ResendMessage serves POST /v2/admin/messages/{id}/resend: the same text again, as a message of its own.
func (c *Console) ResendMessage(w http.ResponseWriter, r *http.Request) error {
	m, branch, err := c.message(r)
	if err != nil {
		return err
	}
	if err := c.Backoffice.ResendMessage(r.Context(), m, branch, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
