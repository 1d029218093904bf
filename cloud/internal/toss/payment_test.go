package toss

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares got, as indented JSON, with the golden file next to the input.
func golden(t *testing.T, path string, got any) {
	t.Helper()
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != string(want) {
		t.Errorf("%s:\ngot  %s\nwant %s", path, b, want)
	}
}

func inputs(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no inputs in %s: %v", dir, err)
	}
	all := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(p, ".json")] = b
	}
	return all
}

func TestDecodePayment(t *testing.T) {
	t.Parallel()
	for name, body := range inputs(t, "payment") {
		p, err := decodePayment(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name+".golden", p)
	}
}

// TestUnusedFieldsMayChange: a field of the provider that the service does not use keeps no payment from being read, whatever its type becomes.
func TestUnusedFieldsMayChange(t *testing.T) {
	t.Parallel()
	p, err := decodePayment([]byte(`{"paymentKey":"k","orderId":"o","status":"DONE","totalAmount":1,"balanceAmount":1,
		"mId":{},"lastTransactionKey":{},"easyPay":[],"virtualAccount":{"settlementStatus":{}},"cancels":[{"cancelReason":{}}]}`))
	if err != nil || p.OrderID != "o" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := decodeTransactions([]byte(`[{"transactionKey":"t","orderId":"o","amount":1,"mId":{},"currency":{}}]`)); err != nil {
		t.Error(err)
	}
}

func TestDecodePaymentRefusesWhatIsNoPayment(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `"DONE"`, `<html>`, `{"paymentKey":"k","orderId":"o","status":"DONE"`,
		`{"paymentKey":"k","orderId":"o","status":"DONE"}`,
		`{"paymentKey":"k","orderId":"o","totalAmount":1,"balanceAmount":1}`,
		`{"paymentKey":"k","status":"DONE","totalAmount":1,"balanceAmount":1}`,
		`{"orderId":"o","status":"DONE","totalAmount":1,"balanceAmount":1}`,
		`{"paymentKey":"k","orderId":"o","status":"DONE","totalAmount":1.5,"balanceAmount":1}`,
		`{"paymentKey":"k","orderId":"o","status":"DONE","totalAmount":"a lot","balanceAmount":1}`,
		`{"paymentKey":"k","orderId":"o","status":"DONE","totalAmount":1e300,"balanceAmount":1}`,
	} {
		if p, err := decodePayment([]byte(body)); err == nil {
			t.Errorf("%s was taken for %+v", body, p)
		}
	}
}

func TestFullyCanceled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status  string
		balance int
		want    bool
	}{
		{StatusCanceled, 0, true},
		{StatusPartialCanceled, 0, true},
		{StatusPartialCanceled, 1, false},
		{StatusDone, 18000, false},
		{StatusDone, 0, false}, // inconsistent, but not cancelled
		{StatusWaitingForDeposit, 18000, false},
		{StatusExpired, 18000, false},
	} {
		p := Payment{Status: tc.status, BalanceAmount: tc.balance}
		if got := p.FullyCanceled(); got != tc.want {
			t.Errorf("%s with balance %d: %v, want %v", tc.status, tc.balance, got, tc.want)
		}
	}
}

func TestCanceledAmountCountsOnlyWhatWasCarriedOut(t *testing.T) {
	t.Parallel()
	p, err := decodePayment(inputs(t, "payment")["testdata/payment/partially-canceled"])
	if err != nil {
		t.Fatal(err)
	}
	if p.CanceledAmount() != 20000 {
		t.Errorf("canceled %d won, want 20000", p.CanceledAmount())
	}
}

func TestTimesWithoutOffsetAreKorean(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`"2026-11-21T15:04:10"`, `"2026-11-21T15:04:10.000000"`, `"2026-11-21T15:04:10+09:00"`, `"2026-11-21T06:04:10Z"`} {
		var at wireTime
		if err := json.Unmarshal([]byte(s), &at); err != nil {
			t.Fatal(err)
		}
		if want := time.Date(2026, 11, 21, 6, 4, 10, 0, time.UTC); !at.Equal(want) {
			t.Errorf("%s is %v, want %v", s, at, want)
		}
	}
}

func FuzzDecodePayment(f *testing.F) {
	for _, body := range inputs(f, "payment") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodePayment(body)
		if err == nil && (p.PaymentKey == "" || p.OrderID == "" || p.Status == "") {
			t.Errorf("a payment without a name: %+v", p)
		}
	})
}
