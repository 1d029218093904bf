package sandbox

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

//go:embed page
var pageFiles embed.FS

var widgetPage = template.Must(template.ParseFS(pageFiles, "page/widget.html"))

// pageRoutes registers the browser pages: the overview, the payment widget and its SDK.
func (s *Sandbox) pageRoutes(mux *http.ServeMux) {
	mux.Handle("GET /{$}", s.pageFile("page/index.html"))
	mux.Handle("GET /page/index.js", s.pageFile("page/index.js"))
	mux.Handle("GET /page/style.css", s.pageFile("page/style.css"))
	mux.Handle("GET /v2/standard", s.pageFile("page/standard.js"))
	mux.HandleFunc("GET /sandbox/widget", s.showWidget)
	mux.HandleFunc("POST /sandbox/widget", s.useWidget)
}

func (s *Sandbox) pageFile(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.pageHeaders(w)
		http.ServeFileFS(w, r, pageFiles, name)
	}
}

func (s *Sandbox) pageHeaders(w http.ResponseWriter) {
	h := w.Header()
	frame := "'none'"
	if s.opts.StageOrigin != "" {
		frame = s.opts.StageOrigin
	}
	h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors "+frame+"; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
}

// showWidget renders the payment window, in which the buyer chooses a method and pays, fails or cancels.
func (s *Sandbox) showWidget(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	amount, _ := strconv.Atoi(q.Get("amount")) // any other input is rejected as an invalid amount
	success, fail := q.Get("successUrl"), q.Get("failUrl")
	if !absolute(success) || !absolute(fail) {
		http.Error(w, "successUrl과 failUrl은 오리진을 포함한 전체 주소여야 합니다.", http.StatusBadRequest)
		return
	}
	p, err := s.Open(Checkout{
		OrderID: q.Get("orderId"), OrderName: q.Get("orderName"), Amount: amount,
		CustomerName: q.Get("customerName"), CustomerPhone: q.Get("customerMobilePhone"), ClientKey: q.Get("clientKey"),
	})
	var refusal *Refusal
	if errors.As(err, &refusal) {
		http.Redirect(w, r, failure(fail, refusal.Code, refusal.Message, q.Get("orderId")), http.StatusSeeOther)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	method := q.Get("method")
	if !slices.Contains(methods, method) {
		method = MethodCard
	}
	s.pageHeaders(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	err = widgetPage.Execute(w, map[string]any{
		"Payment": p, "OrderName": p.OrderName, "Price": thousands(p.TotalAmount), "SuccessURL": success, "FailURL": fail,
		"Methods": methods, "Method": method, "Banks": issuingBanks(),
	})
	if err != nil {
		s.log.Warn("sandbox: widget page", "error", err)
	}
}

// useWidget performs the buyer's action and redirects the browser to the shop with the provider's parameters
// (docs/specification.md, Payment provider 7).
func (s *Sandbox) useWidget(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	success, fail := r.PostFormValue("successUrl"), r.PostFormValue("failUrl")
	if !absolute(success) || !absolute(fail) {
		http.Error(w, "successUrl과 failUrl은 오리진을 포함한 전체 주소여야 합니다.", http.StatusBadRequest)
		return
	}
	key := r.PostFormValue("paymentKey")
	p, err := s.Payment(key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	switch action := r.PostFormValue("action"); action {
	case "pay":
		err = s.AuthenticatePayment(key, r.PostFormValue("method"), r.PostFormValue("bank"))
		if err == nil && r.PostFormValue("decline") != "" {
			err = s.Decline(key, "")
		}
		if err != nil {
			http.Redirect(w, r, failure(fail, "PAY_PROCESS_ABORTED", "결제 진행 중 승인에 실패하여 결제가 중단되었습니다.", p.OrderID), http.StatusSeeOther)
			return
		}
		http.Redirect(w, r, with(success, "paymentType", "NORMAL", "orderId", p.OrderID, "paymentKey", key,
			"amount", strconv.Itoa(p.TotalAmount)), http.StatusSeeOther)
	case "fail":
		http.Redirect(w, r, failure(fail, "REJECT_CARD_COMPANY", refuse("REJECT_CARD_COMPANY").Message, p.OrderID), http.StatusSeeOther)
	case "cancel":
		http.Redirect(w, r, failure(fail, "PAY_PROCESS_CANCELED", "사용자에 의해 결제가 취소되었습니다.", p.OrderID), http.StatusSeeOther)
	default:
		http.Error(w, "action must be pay, fail or cancel", http.StatusBadRequest)
	}
}

func failure(to, code, message, orderID string) string {
	return with(to, "code", code, "message", message, "orderId", orderID)
}

// with adds parameters to an address accepted by absolute.
func with(address string, pairs ...string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// absolute reports whether address is a valid redirect target.
func absolute(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// thousands formats 18000 as 18,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
