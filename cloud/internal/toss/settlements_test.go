package toss_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// The list of a month is complete, however long it is and even if the provider's pages are shorter than the client asks for.
func TestSettlementsOfAChain(t *testing.T) {
	t.Parallel()
	one := sandbox.Settlement{
		MID: "tvivarepublica", PaymentKey: "tgen_20261122150001" + strings.Repeat("x", 20), OrderID: strings.Repeat("o", 64),
		Currency: "KRW", Method: "카드", Amount: 30000, Fees: []sandbox.Fee{{Type: "BASE", Fee: 1056}}, SupplyAmount: 960, VAT: 96, PayOutAmount: 28944,
		ApprovedAt: time.Now(), SoldDate: "2026-11-22", PaidOutDate: "2026-11-25",
	}
	for _, c := range []struct{ total, pageLimit int }{{0, 5000}, {499, 5000}, {500, 5000}, {3000, 5000}, {12000, 5000}, {750, 100}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			size, _ := strconv.Atoi(r.URL.Query().Get("size"))
			size = min(size, c.pageLimit)
			list := []sandbox.Settlement{}
			for i := (page - 1) * size; i < min(page*size, c.total); i++ {
				s := one
				s.TransactionKey = fmt.Sprintf("T%031d", i)
				list = append(list, s)
			}
			_ = json.NewEncoder(w).Encode(list)
		}))
		client, err := toss.New(toss.Config{BaseURL: server.URL, WidgetSecretKey: "test_gsk_a", APISecretKey: "test_sk_a"})
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.Settlements(t.Context(), toss.Widget, time.Now().AddDate(0, -1, 0), time.Now())
		if err != nil || len(list) != c.total {
			t.Errorf("pages of at most %d: got %d settlements and %v, want %d", c.pageLimit, len(list), err, c.total)
		}
		for i, s := range list {
			if want := fmt.Sprintf("T%031d", i); s.TransactionKey != want {
				t.Fatalf("settlement %d: got %s, want %s", i, s.TransactionKey, want)
			}
		}
		server.Close()
	}
}
