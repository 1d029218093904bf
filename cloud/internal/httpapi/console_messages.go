package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
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

// toWireMessage masks whom a message goes to: who needs to know opens the reservation.
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

// maskedEmail keeps the first letter and the domain.
func maskedEmail(email string) string {
	for i, r := range email {
		if r == '@' && i > 0 {
			first := []rune(email)[0]
			return string(first) + "***" + email[i:]
		}
	}
	return ""
}

// listMessages is GET /v2/admin/branches/{branch}/messages?state=&before=&limit=, newest first.
func (a *API) listMessages(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
	if err != nil {
		return err
	}
	before, limit, err := wire.Page(r)
	if err != nil {
		return err
	}
	found, err := postgres.MessagesInState(r.Context(), a.DB.Pool, branch.ID, r.URL.Query().Get("state"), before, limit)
	if err != nil {
		return err
	}
	list := make([]wireMessage, 0, len(found))
	for _, m := range found {
		list = append(list, toWireMessage(m))
	}
	return wire.WriteData(w, map[string]any{"messages": list})
}

// messageInScope returns the message of the path, if its branch is in reach. Messages of no branch are the head
// quarters'.
func (a *API) messageInScope(r *http.Request) (booking.Message, string, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return booking.Message{}, "", booking.ErrNoMessage
	}
	m, err := postgres.MessageByID(r.Context(), a.DB.Pool, id)
	if err != nil {
		return m, "", err
	}
	code := ""
	if m.Branch != 0 {
		branch, err := a.DB.BranchByID(r.Context(), m.Branch)
		if err != nil {
			return m, "", err
		}
		code = branch.Code
	}
	return m, code, wire.Scope(r, code)
}

// showMessage is GET /v2/admin/messages/{id}: a message as the guest reads it. The code of a login is not shown, a key
// only to those who may open doors themselves, and that somebody looked is written down.
func (a *API) showMessage(w http.ResponseWriter, r *http.Request) error {
	m, _, err := a.messageInScope(r)
	if err != nil {
		return err
	}
	variables, err := a.Reserve.Queue.Variables(m)
	if err != nil {
		return err
	}
	secrets := []string{"code"} // what logs somebody in is nobody else's
	if !wire.Principal(r).MayChange() {
		secrets = append(secrets, "doorlockKey", "link") // who may only look opens no doors
	}
	for _, name := range secrets {
		if _, there := variables[name]; there {
			variables[name] = "••••••"
		}
	}
	for _, name := range notify.Template(m.Template).Variables() {
		if variables[name] == "" {
			variables[name] = "–" // forgotten, or never there
		}
	}
	text, err := notify.Message{Template: notify.Template(m.Template), Language: notify.Language(m.Language), Variables: variables}.Render()
	if err != nil {
		return err
	}
	if err := a.viewed(r, "message.view", strconv.FormatInt(m.ID, 10), m.Branch); err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		wireMessage
		Subject *string `json:"subject"`
		Text    string  `json:"text"`
	}{toWireMessage(m), wire.Nullable(text.Subject), text.Body})
}

// resendMessage is POST /v2/admin/messages/{id}/resend: the same once more, as a message of its own. A login's code is
// worth nothing any more and is not sent again.
func (a *API) resendMessage(w http.ResponseWriter, r *http.Request) error {
	m, branch, err := a.messageInScope(r)
	if err != nil {
		return err
	}
	if notify.Template(m.Template) == notify.LoginCode {
		return &wire.FieldError{Problem: "로그인 인증번호는 다시 보낼 수 없습니다."}
	}
	if m.Mobile == "" && m.Email == "" {
		return reserve.ErrNothingToSend
	}
	variables, err := a.Reserve.Queue.Variables(m)
	if err != nil {
		return err
	}
	err = a.DB.InTx(r.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return a.Reserve.Queue.Message(ctx, tx, queue.Message{
			Reservation: m.Reservation, Branch: m.Branch, Template: m.Template, Language: m.Language,
			Mobile: m.Mobile, Email: m.Email, Variables: variables,
		})
	})
	if err != nil {
		return err
	}
	return a.done(w, r, branch, "message.resend", strconv.FormatInt(m.ID, 10), nil)
}

// resendKey is POST /v2/admin/reservations/{id}/key-message.
func (a *API) resendKey(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var branch string
	if err := a.Reserve.ResendKey(r.Context(), id, a.inScope(r, &branch)); err != nil {
		return err
	}
	return a.done(w, r, branch, "reservation.key-message", wire.ReservationID(id), nil)
}
