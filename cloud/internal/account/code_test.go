package account_test

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/limit"
)

var (
	minji      = account.NewCustomer(booking.LoginMobile, "010-1234-5678")
	minjiEmail = account.NewCustomer(booking.LoginEmail, " Minji@Example.com ")
	stranger   = account.NewCustomer(booking.LoginMobile, "010-9999-0000")
)

func TestCodeIsSentAndOpensOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("010-1234-5678", "minji@example.com")
	for _, c := range []account.Customer{minji, minjiEmail, account.NewCustomer(booking.LoginMobile, "+82 10-1234-5678")} {
		d.send(c)
		code := d.code()
		if !regexp.MustCompile(`^[0-9]{6}$`).MatchString(code) {
			t.Errorf("code %q", code)
		}
		if err := d.CheckCode(t.Context(), c, account.Browser{}, code); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if err := d.CheckCode(t.Context(), c, account.Browser{}, code); !errors.Is(err, account.ErrWrongCode) {
			t.Errorf("%v: second use of a code: %v", c, err)
		}
	}
	messages, variables := d.sent()
	if m := messages[0]; m.Template != "login-code" || m.Mobile != "01012345678" || m.Email != "" || variables[0]["minutes"] != "3" {
		t.Errorf("message %+v, %v", m, variables[0])
	}
	if m := messages[1]; m.Mobile != "" || m.Email != "minji@example.com" {
		t.Errorf("message %+v", m)
	}
}

func TestNoHistoryNoCode(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if err := d.SendCode(t.Context(), stranger, account.Browser{Client: "203.0.113.7"}, "ko"); !errors.Is(err, account.ErrNoHistory) {
		t.Errorf("code for an unknown contact: %v", err)
	}
	d.HideAccounts = true
	if err := d.SendCode(t.Context(), stranger, account.Browser{Client: "203.0.113.7"}, "ko"); err != nil {
		t.Errorf("code for an unknown contact with HideAccounts: %v", err)
	}
	if messages, _ := d.sent(); len(messages) != 0 {
		t.Errorf("%d messages sent to an unknown contact", len(messages))
	}
}

func TestCodeLivesThreeMinutes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	for _, c := range []struct {
		after time.Duration
		want  error
	}{
		{0, nil},
		{3*time.Minute - time.Microsecond, nil},
		{3 * time.Minute, account.ErrWrongCode},
		{3*time.Minute + time.Second, account.ErrWrongCode},
	} {
		d.send(minji)
		code := d.code()
		d.pass(c.after)
		if err := d.CheckCode(t.Context(), minji, account.Browser{}, code); !errors.Is(err, c.want) {
			t.Errorf("after %s: %v, want %v", c.after, err, c.want)
		}
	}
}

func TestNewCodeReplacesTheOldOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	d.send(minji)
	old := d.code()
	for d.send(minji); d.code() == old; d.send(minji) {
	}
	if err := d.CheckCode(t.Context(), minji, account.Browser{}, old); !errors.Is(err, account.ErrWrongCode) {
		t.Errorf("the old code: %v", err)
	}
	if err := d.CheckCode(t.Context(), minji, account.Browser{}, d.code()); err != nil {
		t.Errorf("the new code: %v", err)
	}
}

func TestCodeIsBoundToItsCustomer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("010-1234-5678", "minji@example.com")
	d.guest("010-2222-3333", "")
	sujin := account.NewCustomer(booking.LoginMobile, "01022223333")
	d.send(sujin)
	d.send(minji)
	code := d.code()
	for _, c := range []account.Customer{sujin, minjiEmail, stranger, {Type: booking.LoginEmail, ID: minji.ID}} {
		if err := d.CheckCode(t.Context(), c, account.Browser{}, code); !errors.Is(err, account.ErrWrongCode) {
			t.Errorf("the code of %v with %v: %v", minji, c, err)
		}
	}
	if err := d.CheckCode(t.Context(), minji, account.Browser{}, code); err != nil {
		t.Errorf("code of its owner: %v", err)
	}
}

func TestCodeDiesAfterFiveWrongTries(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[int]error{4: nil, 5: account.ErrWrongCode} {
		t.Run(fmt.Sprint(wrong), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.guest("01012345678", "")
			d.send(minji)
			code := d.code()
			for range wrong {
				if err := d.CheckCode(t.Context(), minji, account.Browser{}, other(code)); !errors.Is(err, account.ErrWrongCode) {
					t.Fatal(err)
				}
			}
			if err := d.CheckCode(t.Context(), minji, account.Browser{}, code); !errors.Is(err, want) {
				t.Errorf("correct code after %d wrong ones: %v, want %v", wrong, err, want)
			}
		})
	}
}

// A thousand concurrent guesses are compared at most five times.
func TestParallelGuesses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	d.send(minji)
	code := d.code()
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			guess := fmt.Sprintf("%06d", i)
			if guess == code {
				guess = "999999"
			}
			if err := d.CheckCode(t.Context(), minji, account.Browser{}, guess); !errors.Is(err, account.ErrWrongCode) && !errors.Is(err, limit.ErrExceeded) {
				t.Errorf("guess %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	d.Limits.Off = true
	if err := d.CheckCode(t.Context(), minji, account.Browser{}, code); !errors.Is(err, account.ErrWrongCode) {
		t.Errorf("correct code after a thousand wrong ones: %v", err)
	}
	var tries int
	if err := d.DB.Pool.QueryRow(t.Context(), `select tries from login_code where login_id = $1`, minji.ID).Scan(&tries); err != nil || tries != 5 {
		t.Errorf("counted %d attempts (%v), want 5", tries, err)
	}
}

// If five browsers send the right code at the same time, exactly one of them is logged in.
func TestParallelUse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	d.send(minji)
	code := d.code()
	errs := make([]error, 5)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = d.CheckCode(t.Context(), minji, account.Browser{}, code) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, account.ErrWrongCode):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d logins with one code, want 1", won)
	}
}

func TestCodesAreLimited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	for range 5 {
		d.send(minji)
	}
	d.pass(4 * time.Minute)
	exceeded := new(limit.ExceededError)
	if err := d.SendCode(t.Context(), minji, account.Browser{Client: "203.0.113.8"}, "ko"); !errors.As(err, &exceeded) || exceeded.RetryAfter != 6*time.Minute {
		t.Fatalf("requesting the sixth code: %v", err)
	}
	d.pass(6*time.Minute - time.Microsecond)
	if err := d.SendCode(t.Context(), minji, account.Browser{Client: "203.0.113.8"}, "ko"); !errors.As(err, &exceeded) {
		t.Errorf("requesting a code just before ten minutes: %v", err)
	}
	d.pass(time.Microsecond)
	d.send(minji)

	d.Limits.Off = true
	for range 30 {
		d.send(minji)
	}
}

// The limit per address counts requests for any contact, known or not.
func TestCodesAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ask := func(i int, client string) error {
		return d.SendCode(t.Context(), account.NewCustomer(booking.LoginMobile, fmt.Sprintf("010%08d", i)), account.Browser{Client: client}, "ko")
	}
	for i := range 20 {
		if err := ask(i, "203.0.113.7"); !errors.Is(err, account.ErrNoHistory) {
			t.Fatalf("number %d: %v", i, err)
		}
	}
	if err := ask(20, "203.0.113.7"); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("code for number 21: %v", err)
	}
	if err := ask(20, "203.0.113.8"); !errors.Is(err, account.ErrNoHistory) {
		t.Errorf("code requested from another address: %v", err)
	}
}

// Wrong attempts from elsewhere do not void a code for the browser that asked for it, and the reverse.
func TestForeignGuessesDoNotVoidACode(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	own, foreign := account.Browser{Client: "203.0.113.7", Secret: "own"}, account.Browser{Client: "198.51.100.1", Secret: "foreign"}
	if err := d.SendCode(t.Context(), minji, own, "ko"); err != nil {
		t.Fatal(err)
	}
	code := d.code()
	for range 10 {
		if err := d.CheckCode(t.Context(), minji, foreign, other(code)); !errors.Is(err, account.ErrWrongCode) {
			t.Fatal(err)
		}
	}
	if err := d.CheckCode(t.Context(), minji, foreign, code); !errors.Is(err, account.ErrWrongCode) {
		t.Errorf("correct code in a browser with ten wrong ones: %v, want %v", err, account.ErrWrongCode)
	}
	if err := d.CheckCode(t.Context(), minji, own, code); err != nil {
		t.Errorf("correct code in the browser that asked for it: %v", err)
	}
}

// Requests from elsewhere do not use up the codes of a browser that has logged in before.
func TestForeignRequestsDoNotUseUpADevicesCodes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	known := account.Browser{Client: "203.0.113.7", Device: d.NewDevice(minji.Subject())}
	for range 5 {
		d.send(minji)
	}
	if err := d.SendCode(t.Context(), minji, account.Browser{Client: "203.0.113.8"}, "ko"); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("sixth request of unknown browsers: %v, want %v", err, limit.ErrExceeded)
	}
	for i := range 6 {
		if err := d.SendCode(t.Context(), minji, known, "ko"); errors.Is(err, limit.ErrExceeded) != (i == 5) {
			t.Errorf("request %d of a recognised device: %v", i+1, err)
		}
	}
	forged := account.Browser{Client: "203.0.113.9", Device: d.NewDevice(stranger.Subject())}
	if err := d.SendCode(t.Context(), minji, forged, "ko"); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("request with another contact's device: %v, want %v", err, limit.ErrExceeded)
	}
}

// A day has an end for codes and for guesses, whatever addresses they come from.
func TestDailyBudgetOfAContact(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.guest("01012345678", "")
	sent, guessed := 0, 0
	for i := range 300 {
		b := account.Browser{Client: fmt.Sprintf("203.%d.113.7", i%200)}
		err := d.SendCode(t.Context(), minji, b, "ko")
		if err == nil {
			sent++
		} else if !errors.Is(err, limit.ErrExceeded) {
			t.Fatal(err)
		}
		if err := d.CheckCode(t.Context(), minji, b, "none"); errors.Is(err, account.ErrWrongCode) {
			guessed++
		} else if !errors.Is(err, limit.ErrExceeded) {
			t.Fatal(err)
		}
		d.pass(2 * time.Minute)
	}
	if sent != 30 || guessed != 100 {
		t.Errorf("%d codes and %d guesses in ten hours, want 30 and 100", sent, guessed)
	}
}

// Addresses within a network share a limit.
func TestGuessesAreLimitedByNetwork(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guessed := 0
	for i := range 200 {
		c := account.NewCustomer(booking.LoginMobile, fmt.Sprintf("010%08d", i))
		err := d.CheckCode(t.Context(), c, account.Browser{Client: fmt.Sprintf("2001:db8:1:%x::/64", i)}, "000000")
		if errors.Is(err, account.ErrWrongCode) {
			guessed++
		} else if !errors.Is(err, limit.ErrExceeded) {
			t.Fatal(err)
		}
	}
	if guessed != 120 {
		t.Errorf("%d guesses from one /48, want 120", guessed)
	}
}
