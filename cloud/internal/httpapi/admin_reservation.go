package httpapi

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// reservationDetail serves GET /admin/reservation/{id}.
func (a *API) reservationDetail(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	detail, err := a.Reserve.Detail(r.Context(), id)
	if err != nil {
		return err
	}
	if err := wire.Scope(r, detail.Branch.Code); err != nil {
		return err
	}
	if err := a.Backoffice.Viewed(r.Context(), wire.Principal(r).Actor(), "reservation.view", wire.ReservationID(id), detail.Branch.ID); err != nil {
		return err
	}
	if detail.BookingStatus() == booking.StatusPaid {
		return wire.WriteData(w, wirePaidDetail(detail))
	}
	return wire.WriteData(w, wireBookingDetail(detail, a.Now()))
}

// paidDetail is the detail of a confirmed reservation; all of it strings.
type paidDetail struct {
	DataType      string  `json:"dataType"`
	Name          string  `json:"paidName"`
	MobileNum     string  `json:"paidMobileNum"`
	Email         *string `json:"paidEmail"`
	StartDateTime string  `json:"paidStartDateTime"`
	EndDateTime   string  `json:"paidEndDateTime"`
	BranchEng     string  `json:"paidBranchEng"`
	BranchKor     string  `json:"paidBranchKor"`
	Room          string  `json:"paidRoom"`
	Machine       string  `json:"paidMachine"`
	TotalAmount   string  `json:"paidTotalAmount"`
	Method        string  `json:"paidMethod"`
	DateTime      string  `json:"paidDateTime"`
}

func wirePaidDetail(d reserve.Receipt) paidDetail {
	zone, confirmed := d.Branch.Zone, d.PaidAt
	if confirmed.IsZero() {
		confirmed = d.CreatedAt // a partner does not report when it was paid
	}
	room, _ := d.Branch.Room(d.RoomNo)
	return paidDetail{
		DataType: "paid", Name: d.Name, MobileNum: d.Mobile, Email: wire.Nullable(d.Email),
		StartDateTime: wire.Minute(d.Start, zone), EndDateTime: wire.StoredEnd(d.Interval, zone),
		BranchEng: d.Branch.Code, BranchKor: d.Branch.NameKo, Room: strconv.Itoa(d.RoomNo), Machine: room.Machine,
		TotalAmount: strconv.Itoa(d.Amount), Method: string(d.Method), DateTime: wire.Minute(confirmed, zone),
	}
}

// bookingDetail is the detail of a reservation in progress.
type bookingDetail struct {
	DataType      string  `json:"dataType"`
	TTL           int64   `json:"bookingTtl"`
	Status        string  `json:"bookingStatus"`
	BranchEng     string  `json:"bookingBranchEng"`
	BranchKor     string  `json:"bookingBranchKor"`
	Room          string  `json:"bookingRoom"`
	Machine       string  `json:"bookingMachine"`
	StartDateTime string  `json:"bookingStartDateTime"`
	EndDateTime   string  `json:"bookingEndDateTime"`
	Amount        *string `json:"bookingAmount"`
	Name          *string `json:"bookingName"`
	MobileNum     *string `json:"bookingMobileNum"`
	Email         *string `json:"bookingEmail"`
	BankName      *string `json:"bookingVirtualaccountBankName"`
	AccountNumber *string `json:"bookingVirtualaccountAccountNumber"`
	DueDate       *string `json:"bookingVirtualaccountDueDate"`
}

func wireBookingDetail(d reserve.Receipt, now time.Time) bookingDetail {
	zone := d.Branch.Zone
	room, _ := d.Branch.Room(d.RoomNo)
	detail := bookingDetail{
		DataType: "booking", TTL: max(0, int64(d.ExpiresAt.Sub(now)/time.Second)), Status: string(d.BookingStatus()),
		BranchEng: d.Branch.Code, BranchKor: d.Branch.NameKo, Room: strconv.Itoa(d.RoomNo), Machine: room.Machine,
		StartDateTime: wire.Minute(d.Start, zone), EndDateTime: wire.StoredEnd(d.Interval, zone),
		Name: wire.Nullable(d.Name), MobileNum: wire.Nullable(d.Mobile), Email: wire.Nullable(d.Email),
	}
	if d.OrderID != "" {
		detail.Amount = wire.Nullable(strconv.Itoa(d.Amount))
	}
	if account := d.Payment.Account; account.Number != "" {
		detail.BankName, detail.AccountNumber = wire.Nullable(booking.BankName(account.Bank)), wire.Nullable(account.Number)
		detail.DueDate = wireDue(account, zone)
	}
	return detail
}

// adminCancel serves DELETE /admin/reservation/{id}. The refund account comes in a body, so that account numbers stay out
// of access logs (docs/specification.md, Refunds 4).
func (a *API) adminCancel(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body struct {
		wire.RefundAccount
		Reason *string `json:"reason"` // an addition (docs/specification.md, Administration 12)
	}
	if err := wire.DecodeOptional(r, &body); err != nil {
		return err
	}
	account, err := body.Account()
	if err != nil {
		return err
	}
	text, err := wire.OptionalText("reason", body.Reason, 500)
	if err != nil {
		return err
	}
	err = a.Reserve.AdminCancel(r.Context(), reserve.AdminCancelRequest{
		ID: id, Status: r.URL.Query().Get("bookingStatus"), Account: account, Reason: reserve.ParseCancelReason(text), By: wire.Principal(r),
	})
	if err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// moveReservation serves PUT /admin/reservation/{payId}.
func (a *API) moveReservation(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body struct {
		Room          *string `json:"room"`
		StartDateTime *string `json:"startDateTime"`
		EndDateTime   *string `json:"endDateTime"`
		Reason        *string `json:"reason"`
		Version       *int    `json:"version"` // an addition: what the administrator has seen
		Notify        *bool   `json:"notify"`  // an addition (docs/specification.md, Administration 3)

		WholeStay bool `json:"wholeStay"` // an addition (docs/specification.md, Changes 6)
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	room, err := wire.Text("room", body.Room, 10)
	if err != nil {
		return err
	}
	no, err := wire.Number(room)
	if err != nil {
		return wire.Malformed("room")
	}
	times, err := localInterval(body.StartDateTime, body.EndDateTime)
	if err != nil {
		return err
	}
	reason, err := wire.OptionalText("reason", body.Reason, 500)
	if err != nil {
		return err
	}
	request := reserve.MoveRequest{ID: id, Room: no, Times: times, Reason: reason, By: wire.Principal(r), WholeStay: body.WholeStay}
	if body.Version != nil {
		request.Version = *body.Version
	}
	request.Silent = body.Notify != nil && !*body.Notify
	if err := a.Reserve.Move(r.Context(), request); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// registerWithoutPayment serves POST /admin/payment.
func (a *API) registerWithoutPayment(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name      *string `json:"name"`
		MobileNum *string `json:"mobileNum"`
		Email     *string `json:"email"`
		Reason    *string `json:"reason"`
		Notify    *bool   `json:"notify"` // an addition (docs/specification.md, Administration 1)

		Held *holdBody `json:"held"` // an addition (docs/specification.md, Administration 18)
	}
	if err := wire.DecodeOptional(r, &body); err != nil {
		return err
	}
	contact, err := readContact(r, 50, false, body.Name, body.MobileNum, body.Email)
	if err != nil {
		return err
	}
	reason, err := wire.OptionalText("reason", body.Reason, 500)
	if err != nil {
		return err
	}
	shown, err := body.Held.shown()
	if err != nil {
		return err
	}
	_, err = a.Reserve.RegisterWithoutPayment(r.Context(), holdToken(r, adminHoldCookie), reserve.Registration{
		Contact: contact, Note: reason, Notify: body.Notify != nil && *body.Notify, Shown: shown, By: wire.Principal(r),
	})
	if err != nil {
		return err
	}
	a.setHoldCookie(w, adminHoldCookie, "", 0)
	return wire.WriteData(w, nil)
}

// issueAccount serves POST /admin/v2/virtual-accounts.
func (a *API) issueAccount(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Amount    *int    `json:"amount"`
		OrderName *string `json:"orderName"`
		Name      *string `json:"name"`
		MobileNum *string `json:"mobileNum"`
		Email     *string `json:"email"`
		BankCode  *string `json:"bankCode"`

		Held *holdBody `json:"held"` // an addition (docs/specification.md, Administration 18)
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	amount, err := wire.Whole("amount", body.Amount, 1, math.MaxInt32)
	if err != nil {
		return err
	}
	orderName, err := wire.Text("orderName", body.OrderName, 100)
	if err != nil {
		return err
	}
	contact, err := readContact(r, 100, true, body.Name, body.MobileNum, body.Email)
	if err != nil {
		return err
	}
	bank, err := wire.Text("bankCode", body.BankCode, 10)
	if err != nil {
		return err
	}
	if known, ok := booking.BankByCode(bank); !ok || !known.Issues {
		return wire.UnknownValue("bankCode")
	}
	shown, err := body.Held.shown()
	if err != nil {
		return err
	}
	_, err = a.Reserve.IssueAccount(r.Context(), holdToken(r, adminHoldCookie), reserve.AccountRequest{
		Contact: contact, Amount: amount, OrderName: orderName, Bank: bank, Shown: shown, By: wire.Principal(r),
	})
	if err != nil {
		return err
	}
	a.setHoldCookie(w, adminHoldCookie, "", 0)
	return wire.WriteData(w, struct {
		DataType string `json:"dataType"`
	}{"virtualaccount"})
}

// switchRoom serves PATCH /admin/machines/{branch}/{room}.
func (a *API) switchRoom(w http.ResponseWriter, r *http.Request) error {
	code := chi.URLParam(r, "branch")
	if err := wire.Scope(r, code); err != nil {
		return err
	}
	enabled, err := wire.DecodeEnabled(r)
	if err != nil {
		return err
	}
	no, err := wire.Number(chi.URLParam(r, "room"))
	if err != nil {
		return reserve.ErrNoRoom
	}
	target := code + "/" + strconv.Itoa(no)
	err = a.Reserve.SwitchRoom(r.Context(), code, no, enabled, wire.Principal(r))
	if busy := new(reserve.RoomBusy); errors.As(err, &busy) { // the answer names the guests
		err = cmp.Or(a.Backoffice.Viewed(r.Context(), wire.Principal(r).Actor(), "room.conflicts", target, busy.Conflicts[0].Branch), err)
	}
	if err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// conflict is a reservation that prevents switching a room off.
type conflict struct {
	Type              string `json:"type"`
	Status            string `json:"status"`
	StatusDescription string `json:"statusDescription"`
	Room              string `json:"room"`
	Name              string `json:"name"`
	MobileNum         string `json:"mobileNum"`
	StartTime         string `json:"startTime"`
	EndTime           string `json:"endTime"`
	OrderID           string `json:"orderId"`
}

func wireConflicts(zone *time.Location, reservations []booking.Reservation) any {
	conflicts := make([]conflict, 0, len(reservations))
	for _, r := range reservations {
		conflicts = append(conflicts, wireConflict(r, zone))
	}
	return struct {
		Conflicts []conflict `json:"conflicts"`
	}{conflicts}
}

func wireConflict(r booking.Reservation, zone *time.Location) conflict {
	kind, status, description := conflictKind(r)
	return conflict{
		Type: kind, Status: status, StatusDescription: description, Room: strconv.Itoa(r.RoomNo), Name: r.Name, MobileNum: r.Mobile,
		StartTime: r.Start.In(zone).Format(wire.LayoutConflict), EndTime: r.End.In(zone).Format(wire.LayoutConflict), OrderID: r.OrderID,
	}
}

// conflictKind names a reservation as in docs/specification.md, Administration 2.
func conflictKind(r booking.Reservation) (kind, status, description string) {
	switch {
	case r.Source == booking.Partner:
		return "PARTNER_BOOKING", "CONFIRMED", "외부 채널 예약"
	case r.State == booking.WaitingForDeposit:
		return "WAITING_DEPOSIT", "WAITING_FOR_DEPOSIT", "입금 대기"
	case r.Source == booking.Admin && r.Method == booking.ByAdmin:
		return "ADMIN_BOOKING", "DONE", "관리자 예약"
	case r.Source == booking.Admin && (r.State == booking.Hold || r.State == booking.Confirming):
		return "ADMIN_BOOKING", string(r.BookingStatus()), "관리자 예약 진행 중"
	case r.State == booking.Hold, r.State == booking.Confirming:
		if r.BookingStatus() == booking.StatusPaymentTab {
			return "BOOKING", string(booking.StatusPaymentTab), "결제 진행 중"
		}
		return "BOOKING", string(r.BookingStatus()), "예약 진행 중"
	}
	return "PAID", "DONE", "결제 완료"
}

// retryRefund serves POST /v2/admin/reservations/{id}/refund: a refund that failed is sent on its way again, to another
// account if one is given.
func (a *API) retryRefund(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	var body wire.RefundAccount
	if err := wire.DecodeOptional(r, &body); err != nil {
		return err
	}
	to, err := body.Account()
	if err != nil {
		return err
	}
	if err := a.Reserve.RetryRefund(r.Context(), reserve.RetryRefundRequest{ID: id, Account: to, By: wire.Principal(r)}); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// declineRefund serves DELETE /v2/admin/reservations/{id}/refund/approval: a refund that waits for a second administrator is not
// executed.
func (a *API) declineRefund(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	if err := a.Reserve.DeclineRefund(r.Context(), id, wire.Principal(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// approveRefund serves POST /v2/admin/reservations/{id}/refund/approval: a second administrator approves a refund to an account
// that is not the guest's, or one above the limit.
func (a *API) approveRefund(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	if err := a.Reserve.ApproveRefund(r.Context(), id, wire.Principal(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// reconcile serves POST /v2/admin/reconciliation (headquarters): compares the provider's books of the last week with ours.
func (a *API) reconcile(w http.ResponseWriter, r *http.Request) error {
	report, err := a.Reserve.Reconcile(r.Context(), reserve.Full, reserve.ReconcileSpan)
	if err != nil && (len(report.Failed) == 0 || errors.Is(err, reserve.ErrBooksUnavailable)) {
		return err
	}
	failed := slices.AppendSeq([]string{}, maps.Keys(report.Failed))
	slices.Sort(failed)
	return wire.WriteData(w, struct {
		Compared      int      `json:"compared"`
		Discrepancies int      `json:"discrepancies"`
		Failed        []string `json:"failed"`
		Retired       []string `json:"retired"`
	}{report.Compared, len(report.Discrepancies), failed, append([]string{}, report.Retired...)})
}

// resendKey serves POST /v2/admin/reservations/{id}/key-message.
func (a *API) resendKey(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	if err := a.Reserve.ResendKey(r.Context(), id, wire.Principal(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
