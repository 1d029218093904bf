package account_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const password = "open sesame, please"

func (d *desk) add(n account.NewAdministrator) {
	d.Helper()
	n.Password = password
	if err := d.AddAdministrator(d.Context(), n, "cli:test"); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) login(id, password, client string) (account.Principal, error) {
	return d.LoginAdministrator(d.Context(), account.PasswordAttempt{LoginID: id, Password: password, Client: client})
}

func TestAdministratorLogin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.branch("gangnam")
	d.branch("hongdae")
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	d.add(account.NewAdministrator{LoginID: "manager", Role: account.Manager, Branches: []string{"hongdae", "hongdae"}})
	d.add(account.NewAdministrator{LoginID: "gone", Role: account.HQ})
	if err := d.DisableAdministrator(t.Context(), "gone", "cli:test"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, password string
		want         []string
		err          error
	}{
		{"hq", password, []string{"gangnam", "hongdae"}, nil},
		{"manager", password, []string{"hongdae"}, nil},
		{"hq", password + " ", nil, account.ErrWrongPassword},
		{"hq", "", nil, account.ErrWrongPassword},
		{"HQ", password, nil, account.ErrWrongPassword},
		{"nobody", password, nil, account.ErrWrongPassword},
		{"", password, nil, account.ErrWrongPassword},
		{"gone", password, nil, account.ErrWrongPassword},
	} {
		p, err := d.login(c.id, c.password, "203.0.113.7")
		if !errors.Is(err, c.err) {
			t.Errorf("%q with %q: %+v, %v", c.id, c.password, p, err)
		}
		if list, err := d.BranchList(t.Context(), p); err != nil || !slices.Equal(list, c.want) {
			t.Errorf("branches of %q: %v, %v, want %v", c.id, list, err, c.want)
		}
	}
}

// Rights are read from the database on every request.
func TestRightsFollowTheDatabase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.branch("gangnam")
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	d.add(account.NewAdministrator{LoginID: "manager", Role: account.Manager, Branches: []string{"gangnam"}})
	reaches := func(id, branch string) bool {
		t.Helper()
		p, err := d.Administrator(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return p.Reaches(branch)
	}
	if !reaches("manager", "gangnam") || reaches("manager", "hongdae") || !reaches("hq", "gangnam") {
		t.Fatal("initial rights are wrong")
	}
	if _, err := d.DB.Pool.Exec(t.Context(), `delete from administrator_branch`); err != nil {
		t.Fatal(err)
	}
	if reaches("manager", "gangnam") {
		t.Error("a removed branch is still accessible")
	}
	d.branch("hongdae")
	if !reaches("hq", "hongdae") {
		t.Error("the headquarters does not reach a new branch")
	}
	for _, end := range []func() error{
		func() error { return d.DisableAdministrator(t.Context(), "manager", "cli:test") },
		func() error { return d.RemoveAdministrator(t.Context(), "manager", "cli:test") },
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Administrator(t.Context(), "manager"); !errors.Is(err, booking.ErrNoAdministrator) {
			t.Errorf("rights of a removed or disabled administrator: %v", err)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	viewer := account.Principal{LoginType: account.LoginAdmin, Role: account.Viewer, Branches: []string{"a"}}
	customer := account.Principal{LoginType: "mobile", LoginID: "010", Role: account.HQ, Branches: []string{"a"}}
	if !viewer.Reaches("a") || viewer.Reaches("b") || viewer.MayChange() {
		t.Errorf("viewer %+v", viewer)
	}
	hq := account.Principal{LoginType: account.LoginAdmin, Role: account.HQ}
	if reach := hq.Reach(); reach != nil {
		t.Errorf("reach of the headquarters: %v, want nil, which means every branch", reach)
	}
	for _, p := range []account.Principal{{}, customer, {LoginType: account.LoginAdmin, Role: account.Manager}} {
		if p.Reach() == nil {
			t.Errorf("reach of %+v: nil, which means every branch", p)
		}
	}
	if customer.Reaches("a") || customer.MayChange() {
		t.Error("a customer has rights of an administrator")
	}
	if (account.Principal{}).Authenticated() {
		t.Error("the zero principal is authenticated")
	}
}

func TestFailedLoginsAreLimited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	login := func(id, password, client string) error {
		_, err := d.login(id, password, client)
		return err
	}
	// Successful logins are not counted.
	for range 12 {
		if err := login("hq", password, "203.0.113.1"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		if err := login("hq", "wrong", fmt.Sprintf("203.0.113.%d", i+10)); !errors.Is(err, account.ErrWrongPassword) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	exceeded := new(limit.ExceededError)
	if err := login("hq", password, "203.0.113.99"); !errors.As(err, &exceeded) || exceeded.RetryAfter != 10*time.Minute {
		t.Errorf("correct password after ten wrong ones: %v", err)
	}
	// Per address: ten login ids that do not exist.
	for i := range 10 {
		if err := login(fmt.Sprintf("id%d", i), "wrong", "203.0.113.200"); !errors.Is(err, account.ErrWrongPassword) {
			t.Fatalf("id %d: %v", i, err)
		}
	}
	if err := login("id11", "wrong", "203.0.113.200"); !errors.As(err, &exceeded) {
		t.Errorf("eleventh login id from one address: %v", err)
	}
	d.pass(10 * time.Minute)
	if err := login("hq", password, "203.0.113.200"); err != nil {
		t.Errorf("after ten minutes: %v", err)
	}
}

// Concurrent guesses are compared at most as often as the limit allows, plus those already being hashed. The queue belongs to the
// process, so no other test logs in meanwhile.
func TestParallelPasswords(t *testing.T) { //nolint:paralleltest // see above
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	var looked atomic.Int32
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			_, err := d.login("hq", fmt.Sprint("guess ", i), fmt.Sprintf("203.0.113.%d", i))
			switch {
			case errors.Is(err, account.ErrWrongPassword):
				looked.Add(1)
			case !errors.Is(err, limit.ErrExceeded):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := looked.Load(); n < 10 || n > 12 {
		t.Errorf("compared %d guesses, want 10 to 13", n)
	}
}

// Many correct logins from one address at the same time all succeed.
func TestParallelLogins(t *testing.T) { //nolint:paralleltest // as above
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := d.login("hq", password, "203.0.113.1"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A hash with outdated parameters is replaced at the next login.
func TestHashesAreRenewed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	const older = "$argon2id$v=19$m=8192,t=1,p=1$c2l4dGVlbiBieXRlcyEhIQ$Pk+AquPpzpyJk3Qfn4UrGb9spDJa9if5E6m8L/Chv00" // of "secret"
	if err := postgres.SetPasswordHash(t.Context(), d.DB.Pool, "hq", older, false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.login("hq", "secret", "203.0.113.1"); err != nil {
			t.Fatal(err)
		}
		a, err := postgres.AdministratorByLogin(t.Context(), d.DB.Pool, "hq")
		if err != nil || !strings.HasPrefix(a.PasswordHash, "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Errorf("hash %s, %v", a.PasswordHash, err)
		}
	}
}

func TestAddAdministratorRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.branch("gangnam")
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	for _, c := range []struct {
		n    account.NewAdministrator
		want error
	}{
		{account.NewAdministrator{LoginID: "hq", Password: password, Role: account.HQ}, booking.ErrAdministratorExists},
		{account.NewAdministrator{LoginID: "a", Password: "short", Role: account.HQ}, account.ErrWeakPassword},
		{account.NewAdministrator{LoginID: "a", Password: strings.Repeat("x", 257), Role: account.HQ}, account.ErrWeakPassword},
		{account.NewAdministrator{LoginID: "A b", Password: password, Role: account.HQ}, account.ErrLoginID},
		{account.NewAdministrator{LoginID: "a", Password: password, Role: "boss"}, account.ErrRole},
		{account.NewAdministrator{LoginID: "a", Password: password, Role: account.Manager}, account.ErrNeedsBranch},
		{account.NewAdministrator{LoginID: "a", Password: password, Role: account.HQ, Branches: []string{"gangnam"}}, account.ErrNeedsBranch},
		{account.NewAdministrator{LoginID: "a", Password: password, Role: account.Manager, Branches: []string{"gangnam", "busan"}}, postgres.ErrNoBranch},
	} {
		if err := d.AddAdministrator(t.Context(), c.n, "cli:test"); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.n.LoginID, err, c.want)
		}
	}
	list, err := postgres.Administrators(t.Context(), d.DB.Pool)
	if err != nil || len(list) != 1 {
		t.Errorf("%d administrators, %v", len(list), err)
	}
}

func TestChangesEndSessionsAndAreWrittenDown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	d.add(account.NewAdministrator{LoginID: "second", Role: account.HQ})
	ctx, sessions := t.Context(), postgres.Sessions{DB: d.DB}
	until := d.DB.Now().Add(time.Hour)
	for token, data := range map[string]string{
		"1": `{"loginType":"admin","adminLoginId":"hq"}`,
		"2": `{"loginType":"admin","adminLoginId":"hq"}`,
		"3": `{"loginType":"admin","adminLoginId":"second"}`,
		"4": `{"loginType":"email","loginId":"hq"}`,
	} {
		if err := sessions.CommitCtx(account.WithNewSession(ctx), token, []byte(data), until); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.SetPassword(ctx, "hq", "another "+password, "cli:test"); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{"1": false, "2": false, "3": true, "4": true} {
		if _, found, err := sessions.FindCtx(ctx, token); err != nil || found != want {
			t.Errorf("session %s: found %v, %v", token, found, err)
		}
	}
	if _, err := d.login("hq", password, "c"); !errors.Is(err, account.ErrWrongPassword) {
		t.Errorf("login with the old password: %v", err)
	}
	if _, err := d.login("hq", "another "+password, "c"); err != nil {
		t.Errorf("login with the new password: %v", err)
	}
	if err := d.SetPassword(ctx, "nobody", password, "cli:test"); !errors.Is(err, booking.ErrNoAdministrator) {
		t.Errorf("setting the password of an unknown id: %v", err)
	}
	var actions []string
	err := d.DB.Pool.QueryRow(ctx, `select array_agg(action || ' ' || target order by id) from audit where actor = $1`, "cli:test").Scan(&actions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"administrator.add hq", "administrator.add second", "administrator.password hq"}, actions); diff != "" {
		t.Error(diff)
	}
}

// A change of the own password that was confirmed before a reset does not undo the reset.
func TestChangeOfPasswordBesideAReset(t *testing.T) {
	t.Parallel()
	d, ctx := newDesk(t), t.Context()
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	confirmed, err := d.ConfirmPassword(ctx, "hq", password, "", "198.51.100.1", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetPassword(ctx, "hq", "reset "+password, "cli:test"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ChangePassword(ctx, confirmed, "a thief's "+password); !errors.Is(err, account.ErrWrongPassword) {
		t.Errorf("a change with the password before the reset: %v, want %v", err, account.ErrWrongPassword)
	}
	if confirmed, err = d.ConfirmPassword(ctx, "hq", "reset "+password, "", "198.51.100.1", false); err != nil {
		t.Fatalf("the password of the reset: %v", err)
	}
	if _, err := d.ChangePassword(ctx, confirmed, "my own "+password); err != nil {
		t.Fatal(err)
	}
	if _, err := d.login("hq", "my own "+password, "c"); err != nil {
		t.Errorf("login with the changed password: %v", err)
	}
}

// Ten wrong passwords from elsewhere lock out unknown devices, but neither a browser that has logged in before nor an
// open session.
func TestLockOutSparesRecognisedDevices(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	d.add(account.NewAdministrator{LoginID: "second", Role: account.HQ})
	attempt := func(password, client string, device account.Device) error {
		_, err := d.LoginAdministrator(t.Context(), account.PasswordAttempt{LoginID: "hq", Password: password, Client: client, Device: device})
		return err
	}
	known := d.NewDevice(account.AdministratorSubject("hq"))
	for i := range 10 {
		if err := attempt("wrong", fmt.Sprintf("203.0.113.%d", i), ""); !errors.Is(err, account.ErrWrongPassword) {
			t.Fatal(err)
		}
	}
	for name, device := range map[string]account.Device{
		"no device": "", "another administrator's device": d.NewDevice(account.AdministratorSubject("second")), "a forged device": known + "x", "half a device": known[:10],
	} {
		if err := attempt(password, "198.51.100.1", device); !errors.Is(err, limit.ErrExceeded) {
			t.Errorf("correct password with %s: %v, want %v", name, err, limit.ErrExceeded)
		}
	}
	if err := attempt(password, "198.51.100.1", known); err != nil {
		t.Errorf("correct password on a recognised device: %v", err)
	}
	if _, err := d.ConfirmPassword(t.Context(), "hq", password, "", "198.51.100.1", false); err != nil {
		t.Errorf("confirming the password in an open session: %v", err)
	}
	for range 10 {
		if err := attempt("wrong", "198.51.100.1", known); !errors.Is(err, account.ErrWrongPassword) {
			t.Fatal(err)
		}
	}
	if err := attempt(password, "198.51.100.1", known); !errors.Is(err, limit.ErrExceeded) {
		t.Errorf("correct password after ten wrong ones on the device itself: %v, want %v", err, limit.ErrExceeded)
	}
}

func TestCommonPasswordsAreRejected(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "weak2", Role: account.HQ})
	for _, bad := range []string{
		"password1234", "Password1234!", "p@ssw0rd2026", "passwordpassword", "adminadmin2026", "Administrator1", "qwertyuiop12", "1q2w3e4r5t6y",
		"123456789012", "abcdefghijkl", "aaaaaaaaaaaa", "abc123abc123", "iloveyou2026!", "weak2weak2weak2", "111222333444", "yeolda-admin-2026",
	} {
		if err := d.SetPassword(t.Context(), "weak2", bad, "cli:test"); !errors.Is(err, account.ErrCommonPassword) {
			t.Errorf("%q: %v, want %v", bad, err, account.ErrCommonPassword)
		}
	}
	for _, good := range []string{"open sesame, please", "twelve letters", "correct horse battery", "x7Q-lamp-river-9", "비밀번호 열두자 이상입니다", "weak2 lamp river nine"} {
		if err := d.SetPassword(t.Context(), "weak2", good, "cli:test"); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// TestRolesOfTheSettings: the settings name the roles without this package.
func TestRolesOfTheSettings(t *testing.T) {
	t.Parallel()
	var names []string
	for _, role := range account.Roles {
		names = append(names, string(role))
	}
	if !slices.Equal(names, config.Roles) {
		t.Errorf("the settings have the roles %v, want %v", config.Roles, names)
	}
}
