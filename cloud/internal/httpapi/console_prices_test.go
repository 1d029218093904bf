package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestPriceRules: the rules of a room decide what a stay costs from the hold on. A hold keeps its price, the look-up shows the
// rules in a field of its own, and a preview changes nothing.
func TestPriceRules(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	korea := time.FixedZone("KST", 9*60*60)
	const prices = "/v2/admin/branches/gangnam/rooms/2/prices"
	day := someday()
	rule := func(won int) map[string]any {
		return map[string]any{"from": day.In(korea).Format(time.DateOnly), "days": []int{1, 2, 3, 4, 5, 6, 7}, "hours": nil, "min60": won}
	}
	rules := func(list ...map[string]any) map[string]any {
		return map[string]any{"rules": append([]map[string]any{}, list...)}
	}
	register := func(c *servicetest.Client, won int) servicetest.Answer {
		return c.Post("/payment", map[string]any{"amount": won, "name": "홍길동", "mobileNum": "01012345678"})
	}

	old := s.Client(t)
	old.Post("/reservation", holdBody(2, day, time.Hour)).OK(t)
	var preview struct {
		Days []struct {
			Date  string
			Spans []struct {
				From, To string
				Rule     *int
				Min60    *int
			}
		}
	}
	draft := rules(rule(41000))
	draft["date"] = rule(0)["from"]
	hq.Post(prices+"/preview", draft).OK(t).Into(t, &preview)
	if first := preview.Days[0].Spans[0]; len(preview.Days) != 7 || len(preview.Days[0].Spans) != 1 || first.From != "00:00" || first.To != "24:00" ||
		first.Rule == nil || *first.Rule != 0 || *first.Min60 != 41000 {
		t.Errorf("preview: %+v", preview)
	}
	var found v2
	lookUp := "/v2/branches/gangnam/reservations?" + dayOf(day.Add(-2*time.Hour), 8)
	if a := s.Client(t).Get(lookUp).OK(t); strings.Contains(string(a.Raw), "pricingChanges") {
		t.Errorf("a preview changed the prices: %s", a.Raw)
	}

	hq.Put(prices, rules(rule(41000))).OK(t)
	var shown struct {
		Rules []struct {
			From  string
			Days  []int
			Min60 *int
		}
	}
	hq.Get(prices).OK(t).Into(t, &shown)
	if len(shown.Rules) != 1 || shown.Rules[0].From != rule(0)["from"] || len(shown.Rules[0].Days) != 7 || *shown.Rules[0].Min60 != 41000 {
		t.Errorf("rules: %+v", shown)
	}
	answer := s.Client(t).Get(lookUp).OK(t)
	answer.Into(t, &found)
	if !strings.Contains(string(answer.Raw), `"pricingChanges":[{"fromDateTime":"`+day.Add(-2*time.Hour).In(korea).Format("200601021504")+`","min10":null,"min30":null,"min60":41000}]`) ||
		!strings.Contains(string(answer.Raw), `"pricing":{"min10":5000,"min30":13500,"min60":25000}`) {
		t.Errorf("look-up: %s", answer.Raw)
	}
	timeline := hq.Get("/v2/admin/branches/gangnam/timeline?date=" + day.In(korea).Format(time.DateOnly)).OK(t)
	if !strings.Contains(string(timeline.Raw), `"pricingChanges":[{"fromDateTime":"`+day.In(korea).Format("20060102")+`0000","min10":null,"min30":null,"min60":41000}]`) {
		t.Errorf("the day in the console: %s", timeline.Raw)
	}

	register(old, 41000).Fails(t, http.StatusBadRequest, "PaymentAmountMismatchException", "결제 금액이 예약 금액과 일치하지 않습니다.")
	register(old, 25000).OK(t) // the price of its hold
	next := s.Client(t)
	next.Post("/reservation", holdBody(2, day.Add(3*time.Hour), time.Hour)).OK(t)
	hq.Put(prices, rules(rule(41000), rule(52000))).OK(t) // the last one counts from now on
	register(next, 52000).Fails(t, http.StatusBadRequest, "PaymentAmountMismatchException", "결제 금액이 예약 금액과 일치하지 않습니다.")
	register(next, 41000).OK(t)
	half := s.Client(t).Post("/reservation", holdBody(2, day.Add(6*time.Hour), 30*time.Minute))
	half.Fails(t, http.StatusBadRequest, "IllegalArguemntError", half.Message)

	for name, c := range map[string]struct {
		spoil func(map[string]any)
		field string
	}{
		"no first day": {func(r map[string]any) { delete(r, "from") }, "from"},
		"no date":      {func(r map[string]any) { r["from"] = "soon" }, "from"},
		"no weekday":   {func(r map[string]any) { r["days"] = []int{8} }, "days"},
		"a day twice":  {func(r map[string]any) { r["days"] = []int{1, 1} }, "priceRules"},
		"no hours":     {func(r map[string]any) { r["hours"] = map[string]string{"from": "18:05", "to": "19:00"} }, "hours"},
		"no price":     {func(r map[string]any) { delete(r, "min60") }, "priceRules"},
		"a price of 1": {func(r map[string]any) { r["min60"] = 1 }, "price"},
	} {
		bad := rule(30000)
		c.spoil(bad)
		refuses(t, name, hq.Put(prices, rules(bad)), c.field)
	}
	refuses(t, "no rules", hq.Put(prices, map[string]any{}), "rules")
	hq.Get(prices).OK(t).Into(t, &shown)
	if len(shown.Rules) != 2 {
		t.Errorf("a refused request changed the rules: %+v", shown)
	}
	stale := rules(rule(60000))
	stale["expected"] = rules(rule(41000))["rules"]
	hq.Put(prices, stale).Fails(t, http.StatusConflict, "SettingConflictException", "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요.")
	var saved struct{ Rules []map[string]any }
	hq.Get(prices).OK(t).Into(t, &saved)
	if len(saved.Rules) != 2 {
		t.Errorf("rules that another administrator has changed were replaced: %+v", saved.Rules)
	}
	hq.Put(prices, map[string]any{"rules": saved.Rules, "expected": saved.Rules}).OK(t)
	hq.Put(prices, rules()).OK(t)
	if a := s.Client(t).Get(lookUp).OK(t); strings.Contains(string(a.Raw), "pricingChanges") {
		t.Errorf("without rules: %s", a.Raw)
	}
	hq.Get("/v2/admin/branches/gangnam/rooms/999/prices").Fails(t, http.StatusNotFound, "ResourceNotFoundException", "해당 룸을 찾을 수 없습니다.")
}
