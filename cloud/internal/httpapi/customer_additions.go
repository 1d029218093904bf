package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Additional endpoints for the customers' pages. They use the envelope, the time format and the stored end times of the
// interface. An end time in a field of another name is the actual end.

// listBranches serves GET /v2/branches?branch= (public): all branches, or at most the one with that code.
//
//	{branches: [{branch, nameKo, nameEn, address, phone, timeZone, bookingHorizonDays, refundPolicyText, seller}]}
//
// seller is the legal entity that sells at the branch; null: the company of /v2/site.
func (a *API) listBranches(w http.ResponseWriter, r *http.Request) error {
	all, err := a.wantedBranches(r)
	if err != nil {
		return err
	}
	sellers, err := a.sellers(r.Context(), all)
	if err != nil {
		return err
	}
	type item struct {
		wireBranch
		Seller *wireCompany `json:"seller"`
	}
	branches := make([]item, 0, len(all))
	for _, b := range all {
		branches = append(branches, item{toWireBranch(b), sellers[b.LegalEntity]})
	}
	return wire.WriteData(w, map[string]any{"branches": branches})
}

func (a *API) wantedBranches(r *http.Request) ([]booking.Branch, error) {
	if !r.URL.Query().Has("branch") {
		return a.Backoffice.Branches(r.Context())
	}
	b, err := a.Backoffice.Branch(r.Context(), r.URL.Query().Get("branch"))
	if errors.Is(err, booking.ErrNoBranch) {
		return nil, nil
	}
	return []booking.Branch{b}, err
}

// sellers returns the facts of the legal entities by code. It reads none while no branch has one.
func (a *API) sellers(ctx context.Context, branches []booking.Branch) (map[string]*wireCompany, error) {
	if !slices.ContainsFunc(branches, func(b booking.Branch) bool { return b.LegalEntity != "" }) {
		return nil, nil
	}
	list, err := a.Entities.List(ctx)
	if err != nil {
		return nil, err
	}
	facts := make(map[string]*wireCompany, len(list))
	for _, e := range list {
		facts[e.Code] = toSeller(e)
	}
	return facts, nil
}

// listBanks serves GET /v2/banks (public):
//
//	{banks: [{code, name, issues}]}   issues: the bank issues virtual accounts; every bank accepts refunds
func (a *API) listBanks(w http.ResponseWriter, _ *http.Request) error {
	type item struct {
		Code   string `json:"code"`
		Name   string `json:"name"`
		Issues bool   `json:"issues"`
	}
	all := booking.Banks()
	banks := make([]item, 0, len(all))
	for _, bank := range all {
		banks = append(banks, item{bank.Code, bank.Name, bank.Issues})
	}
	return wire.WriteData(w, map[string]any{"banks": banks})
}

// showSite serves GET /v2/site (public):
//
//	{company: {name, representative, address, phone, email, businessNumber, mailOrderNumber}, each null if unset,
//	 payment: {clientKey, scriptUrl}, languages: ["ko", "en"],
//	 legalVersion}
func (a *API) showSite(w http.ResponseWriter, r *http.Request) error {
	type payment struct {
		ClientKey string `json:"clientKey"`
		ScriptURL string `json:"scriptUrl"`
	}
	now := a.Company.Current(r.Context())
	return wire.WriteData(w, struct {
		Company   wireCompany `json:"company"`
		Payment   payment     `json:"payment"`
		Languages []string    `json:"languages"`

		LegalVersion     string `json:"legalVersion"`
		LoginCodeSeconds int    `json:"loginCodeSeconds"`
	}{
		toWireCompany(now.Company),
		payment{a.Site.TossClientKey, a.Site.TossScript},
		[]string{"ko", "en"}, now.Version, int(a.Account.CodeTTL.Seconds()),
	})
}

// wireCompany holds the facts about an operator or a seller; each is null if it is not set.
type wireCompany struct {
	Name            *string `json:"name"`
	Representative  *string `json:"representative"`
	Address         *string `json:"address"`
	Phone           *string `json:"phone"`
	Email           *string `json:"email"`
	BusinessNumber  *string `json:"businessNumber"`
	MailOrderNumber *string `json:"mailOrderNumber"`
	HostingProvider *string `json:"hostingProvider"`
}

func toWireCompany(c company.Facts) wireCompany {
	return wireCompany{wire.Nullable(c.Name), wire.Nullable(c.Representative), wire.Nullable(c.Address), wire.Nullable(c.Phone), wire.Nullable(c.Email),
		wire.Nullable(c.BusinessNumber), wire.Nullable(c.MailOrderNumber), wire.Nullable(c.HostingProvider)}
}

// toSeller returns the facts of a legal entity; nil for that of the settings.
func toSeller(e company.Entity) *wireCompany {
	if e.Code == "" {
		return nil
	}
	return new(toWireCompany(e.Facts))
}

// showHold serves GET /v2/hold (cookie PAY_SESSIONID). Without a live hold it returns 401 ResourceTimeOutException:
//
//	{branch, roomNo, startDateTime, endDateTime (stored), amount, bookingStatus, expiresAt (RFC 3339), remainingSeconds,
//	 clientKey (of the payment widget), seller (null: the company of /v2/site)}
func (a *API) showHold(w http.ResponseWriter, r *http.Request) error {
	branch, held, price, err := a.Reserve.Held(r.Context(), holdToken(r, customerHoldCookie))
	if err != nil {
		return err
	}
	entity := held.LegalEntity
	if held.OrderID == "" {
		entity = branch.LegalEntity
	}
	seller, err := a.Entities.Entity(r.Context(), entity)
	if err != nil {
		return err
	}
	remaining := held.ExpiresAt.Sub(a.Now())
	return wire.WriteData(w, struct {
		Branch        string `json:"branch"`
		RoomNo        string `json:"roomNo"`
		StartDateTime string `json:"startDateTime"`
		EndDateTime   string `json:"endDateTime"`
		Amount        int    `json:"amount"`
		BookingStatus string `json:"bookingStatus"`
		ExpiresAt     string `json:"expiresAt"`
		Remaining     int    `json:"remainingSeconds"`

		ClientKey string       `json:"clientKey"`
		Seller    *wireCompany `json:"seller"`
	}{
		branch.Code, strconv.Itoa(held.RoomNo), wire.Minute(held.Start, branch.Zone), wire.StoredEnd(held.Interval, branch.Zone),
		price, string(held.BookingStatus()), held.ExpiresAt.In(branch.Zone).Format(time.RFC3339),
		max(0, int(math.Ceil(remaining.Seconds()))),
		seller.ClientKey, toSeller(seller),
	})
}

// quoteRefund serves GET /v2/my-reservations/{id}/refund (customer's session): what a cancellation returns now.
//
//	{amount, paid, percent, cancelUntil (RFC 3339), refundPolicy, refundPolicyText: {ko, en}, needsAccount}
func (a *API) quoteRefund(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	quote, err := a.Reserve.RefundQuote(r.Context(), id, wire.Principal(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Amount       int                  `json:"amount"`
		Paid         int                  `json:"paid"`
		Percent      int                  `json:"percent"`
		CancelUntil  *string              `json:"cancelUntil"`
		Policy       booking.RefundPolicy `json:"refundPolicy"`
		Text         refundText           `json:"refundPolicyText"`
		NeedsAccount bool                 `json:"needsAccount"`
	}{quote.Amount, quote.Paid, quote.Percent, wire.Instant(quote.CancelUntil), quote.Policy, toRefundText(quote.Policy), quote.NeedsAccount})
}

// showReceipt serves GET /v2/receipt (cookie PAY_SESSIONID, which POST /payment/confirm extends): the browser's purchase. It
// returns the fields of POST /payment/confirm and
//
//	{orderId, status (DONE, WAITING_FOR_DEPOSIT, CANCELED), amount, doorlockKey, keyLink, receiptUrl,
//	 keyMessage (sending, sent, failed; of the message with the key), keyMailed (it went to the e-mail address), correctable,
//	 photo (of the room)}
//
// A confirmation in progress returns 503 PaymentPendingException; no purchase returns 401 ResourceTimeOutException.
func (a *API) showReceipt(w http.ResponseWriter, r *http.Request) error {
	receipt, err := a.Reserve.ByToken(r.Context(), holdToken(r, customerHoldCookie))
	if err != nil {
		return err
	}
	switch {
	case receipt.State == booking.Confirming:
		return reserve.ErrPaymentPending
	case receipt.Method == "": // a hold, or one that ended without a payment
		return reserve.ErrHoldExpired
	}
	delivery, err := a.Reserve.Delivery(r.Context(), receipt.Reservation)
	if err != nil {
		return err
	}
	cover, err := a.Gallery.Cover(r.Context(), receipt.Room)
	if err != nil {
		return err
	}
	answer := struct {
		confirmed
		OrderID     string  `json:"orderId"`
		Status      string  `json:"status"`
		Price       int     `json:"amount"`
		DoorlockKey *string `json:"doorlockKey"`
		KeyLink     *string `json:"keyLink"`
		ReceiptURL  *string `json:"receiptUrl"`
		KeyMessage  *string `json:"keyMessage"`
		KeyMailed   bool    `json:"keyMailed"`
		Correctable bool    `json:"correctable"`

		Photo       *wirePhoto          `json:"photo"`
		CashReceipt *wire.IssuedReceipt `json:"cashReceipt,omitempty"`
		Refund      refundText          `json:"refundPolicyText"`
	}{
		confirmed: wireConfirmed(receipt), OrderID: receipt.OrderID, Status: wireStatus(receipt.Reservation), Price: receipt.Amount,
		DoorlockKey: wire.Nullable(receipt.DoorlockKey), KeyLink: a.keyLink(receipt.DoorlockKey),
		ReceiptURL: wire.Nullable(receipt.Payment.ReceiptURL), CashReceipt: cashReceipt(receipt),
		KeyMessage: wire.Nullable(keyMessages[delivery.KeyMessage]), KeyMailed: delivery.Mailed, Correctable: delivery.Correctable,
		Photo: nullablePhoto(cover), Refund: toRefundText(receipt.Policy),
	}
	answer.ofExtension(receipt.Reservation)
	return wire.WriteData(w, answer)
}

// keyMessages are the delivery states of the message with the key, as a guest understands them.
var keyMessages = map[booking.MessageState]string{
	booking.MessageQueued: "sending", booking.MessageSending: "sending", booking.MessageSent: "sent", booking.MessageFailed: "failed",
}

// corrections bounds how often a guest corrects the number of a purchase: each correction sends a message to a number that
// may be a stranger's.
var corrections = limit.Rule{Name: "contact-correction", Max: 3, Window: 24 * time.Hour}

// correctReceipt serves POST /v2/receipt/contact (cookie PAY_SESSIONID): {mobileNum} replaces the phone number of the
// browser's purchase and sends the key to it, until a door has opened for the reservation. With orderId it changes nothing if another
// window of the browser has bought something else since.
func (a *API) correctReceipt(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		MobileNum *string `json:"mobileNum"`
		OrderID   *string `json:"orderId"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	mobile, err := wire.Mobile("mobileNum", body.MobileNum, true)
	if err != nil {
		return err
	}
	receipt, err := a.Reserve.ByToken(r.Context(), holdToken(r, customerHoldCookie))
	if err != nil {
		return err
	}
	if body.OrderID != nil && *body.OrderID != receipt.OrderID {
		return reserve.ErrHoldChanged
	}
	if err := a.Limits.Take(r.Context(), corrections, strconv.FormatInt(int64(receipt.ID), 10)); err != nil {
		return err
	}
	if err := a.Reserve.CorrectMobile(r.Context(), receipt.ID, mobile); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// listKeys serves GET /v2/my-keys (customer's session): the keys of the caller's confirmed reservations, newest first.
//
//	{keys: [{id, doorlockKey, keyLink}]}
func (a *API) listKeys(w http.ResponseWriter, r *http.Request) error {
	type item struct {
		ID          int64   `json:"id"`
		DoorlockKey string  `json:"doorlockKey"`
		KeyLink     *string `json:"keyLink"`
	}
	receipts, err := a.Reserve.History(r.Context(), wire.Principal(r).LoginType, wire.Principal(r).LoginID)
	if err != nil {
		return err
	}
	keys := []item{}
	for _, receipt := range receipts {
		if receipt.DoorlockKey != "" {
			keys = append(keys, item{int64(receipt.ID), receipt.DoorlockKey, a.keyLink(receipt.DoorlockKey)})
		}
	}
	return wire.WriteData(w, map[string]any{"keys": keys})
}

// showKey serves GET /v2/keys/{key} (any client with the key). An unknown key returns 400 ResourceNotExistException:
//
//	{branch, branchNameKo, branchNameEn, address, phone, roomNo, startDateTime, endDateTime (stored),
//	 windowFrom, windowTo, serverTime (RFC 3339), state (before, open, after), online, kind (owner, companion, staff),
//	 keypads: {front, room} (agent, standalone, none), pin: {code, from, until, doors, ready} or null before the disclosure}
func (a *API) showKey(w http.ResponseWriter, r *http.Request) error {
	key, err := a.Access.Lookup(r.Context(), chi.URLParam(r, "key"))
	if err != nil {
		return err
	}
	branch, held := key.Branch, key.Reservation
	rfc := func(t time.Time) string { return t.In(branch.Zone).Format(time.RFC3339) }
	now := a.Now()
	from, to := held.UnlockWindow()
	compensation, err := a.compensation(r.Context(), held.ID)
	if err != nil {
		return err
	}
	air, err := a.climateOf(r, held)
	if err != nil {
		return err
	}
	pin, err := a.pinOf(r, key)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return wire.WriteData(w, struct {
		Branch        string `json:"branch"`
		NameKo        string `json:"branchNameKo"`
		NameEn        string `json:"branchNameEn"`
		Address       string `json:"address"`
		Phone         string `json:"phone"`
		RoomNo        string `json:"roomNo"`
		StartDateTime string `json:"startDateTime"`
		EndDateTime   string `json:"endDateTime"`
		WindowFrom    string `json:"windowFrom"`
		WindowTo      string `json:"windowTo"`
		ServerTime    string `json:"serverTime"`
		State         string `json:"state"`
		Online        bool   `json:"online"`
		Kind          string `json:"kind"`

		Compensation *wireCompensation         `json:"compensation"`
		Climate      *guestClimate             `json:"climate"`
		Keypads      map[string]booking.Keypad `json:"keypads"`
		PIN          *wirePIN                  `json:"pin"`
	}{
		branch.Code, branch.NameKo, branch.NameEn, branch.Address, a.phoneOf(r, branch), strconv.Itoa(held.RoomNo),
		wire.Minute(held.Start, branch.Zone), wire.StoredEnd(held.Stay(), branch.Zone),
		rfc(from), rfc(to), rfc(now), keyState(key, now), key.Online, string(key.Key.Kind), compensation, air, keypads(key), pin,
	})
}

func keyState(key access.Key, now time.Time) string {
	from, to := key.Reservation.UnlockWindow()
	switch {
	case now.Before(from):
		return "before"
	case now.Before(to):
		return "open"
	}
	return "after"
}

// keyLink returns the address of the page that opens doors with a key, or nil if the key is empty.
func (a *API) keyLink(key string) *string {
	if key == "" {
		return nil
	}
	link := a.Reserve.KeyLink(key)
	return &link
}
