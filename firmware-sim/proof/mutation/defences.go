package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A defence is a line of code behind a row of SECURITY.md. Without it, a test that the row names must fail.
type defence struct {
	row  string
	file string
	code string // occurs once in the file
	gone string // replaces code: the defence is missing
	dir  string // of the test
	test string
}

// defences holds at least one defence of each row, in the order of the rows.
var defences = []defence{
	{"A1", "cloud/internal/httpapi/session/session.go", "	if err := m.sessions.RenewToken(ctx); err != nil {\n		return err\n	}\n", "", "cloud/internal/httpapi", "TestLoginGivesANewSession"},
	{"A2", "cloud/internal/service/routes.go", "guard.Handler(mux)", "http.Handler(mux)", "cloud/internal/httpapi", "TestOtherSites"},
	{"A3", "cloud/internal/httpapi/handle.go", `	"X-Content-Type-Options":  "nosniff",`, `	"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "*",`, "cloud/internal/service", "TestNoOriginIsAllowed"},
	{"A4", "cloud/internal/httpapi/session/session.go", "http.SameSiteLaxMode", "http.SameSiteNoneMode", "cloud/internal/httpapi", "TestSecureCookies"},
	{"A5", "cloud/internal/account/code.go", "const maxCodeTries = 5", "const maxCodeTries = 500", "cloud/internal/account", "TestCodeDiesAfterFiveWrongTries"},
	{"A6", "cloud/internal/account/code.go", `"login-code-id", Max: 5,`, `"login-code-id", Max: 500,`, "cloud/internal/account", "TestCodesAreLimited"},
	{"A7", "cloud/internal/booking/reservation.go", "		return ErrOutsideWindow\n", "		return nil\n", "cloud/internal/httpapi", "TestUnlockRefusals"},
	{"A8", "cloud/internal/account/administrator.go", `"admin-login-id", Max: 10,`, `"admin-login-id", Max: 1000,`, "cloud/internal/account", "TestFailedLoginsAreLimited"},
	{"A9", "cloud/internal/account/code.go", "if !known && !s.HideAccounts {", "if !known {", "cloud/internal/account", "TestNoHistoryNoCode"},
	{"A10", "cloud/internal/httpapi/routes.go", "a.hq(c.ListAdministrators)", "a.viewer(c.ListAdministrators)", "cloud/internal/httpapi", "TestAuthorization"},
	{"A11", "cloud/internal/account/principal.go", "(p.Role == HQ || slices.Contains(p.Branches, branch))", `branch != ""`, "cloud/internal/httpapi", "TestAuthorization"},
	{"A12", "cloud/internal/httpapi/layers.go", "	return loggedIn\n}", "	return public\n}", "cloud/internal/httpapi", "TestLayersWithoutARoute"},
	{"A13", "cloud/internal/httpapi/wire/fields.go", "if !isObject(raw) {", "if !isObject(raw) && false {", "cloud/internal/httpapi", "TestBadBodies"},
	{"A14", "cloud/internal/reserve/register.go", "if amount != price {", "if amount != price && false {", "cloud/internal/httpapi", "TestRegisterPayment"},
	{"A15", "cloud/internal/reserve/rule/rule.go", "p.OrderID == r.OrderID && p.TotalAmount == r.Amount &&", "(p.OrderID == r.OrderID && p.TotalAmount == r.Amount || true) &&", "cloud/internal/reserve/rule", "TestTable"},
	{"A16", "cloud/internal/reserve/callback.go", "if !c.SecretMatches(string(secret)) {", "if !c.SecretMatches(string(secret)) && false {", "cloud/internal/reserve", "TestForgeries"},
	{"A17", "cloud/internal/reserve/cancel.go", "case !r.BelongsTo(req.By.LoginType, req.By.LoginID):", "case !r.BelongsTo(req.By.LoginType, req.By.LoginID) && false:", "cloud/internal/httpapi", "TestCancelPayment"},
	{"A18", "cloud/internal/service/service.go", "set.HTTP.Limit(set.HTTP.MaxHoldsPerClient)", "0", "cloud/internal/attack", "TestAttacks/A18/hoarding-from-one-address"},
	{"A19", "cloud/internal/postgres/auditchain.go", "case !bytes.Equal(e.hash, e.link(head.Hash)):", "case !bytes.Equal(e.hash, e.link(head.Hash)) && false:", "cloud/internal/postgres", "TestAuditChainTellsWhatWasDone"},
	{"A19", "cloud/internal/proof/head.go", "if err := notify.Post(ctx, s.HeadURL, line); err != nil {", "if err := notify.Post(ctx, s.HeadURL, nil); err != nil {", "cloud/internal/proof", "TestHeadLeavesEveryHour"},
	{"A19", "cloud/internal/httpapi/console/day.go", "if len(found)+len(canceled)+len(conflicts) > 0 {", "if len(found)+len(canceled)+len(conflicts) < 0 {", "cloud/internal/attack", "TestAttacks/A19/names-read-without-a-trace"},
	{"A20", "cloud/internal/config/secret.go", `return "***"`, "return s.value", "cloud/internal/config", "TestSecretsAreNotShown"},
	{"A21", "cloud/internal/broker/hook.go", "case !ok || !s.agent().MayPublish(pk.TopicName) ||", "case !ok ||", "cloud/internal/broker", "TestForeignTopicsAreOutOfReach"},
	{"A22", "agent/internal/door/controller.go", "if err := m.Verify(keys...); err != nil {", "if err := m.Verify(keys...); err != nil && false {", "agent/internal/door", "TestForgedGrantIsIgnored"},
	{"A23", "cloud/internal/broker/challenge.go", "!ed25519.Verify(key,", "false && !ed25519.Verify(key,", "cloud/internal/broker", "TestChallengeIsNotReplayable"},
	{"A24", "agent/internal/door/door.go", "Kind: protocol.EventWasEnergized, Device: d.lock.Device})\n	}\n	_ = d.idle()", "Kind: protocol.EventWasEnergized, Device: d.lock.Device})\n	}\n	", "agent/internal/door", "TestRelockOnStart"},
	{"A25", "cloud/internal/postgres/door.go", "and d.requested_by = $4 and d.created_at", "and $4 <> '' and d.created_at", "cloud/internal/httpapi", "TestOnlyTheActorSeesThePIN"},
	{"A26", "cloud/internal/postgres/personal.go", `		{Name: "account_holder", Erased: "null"}, `, "		", "cloud/internal/postgres", "TestErasureLeavesNothing|TestEveryColumnIsClassified"},
	{"A27", "cloud/internal/channel/guard.go", "return guardian.Safe(network, address, c)", "return nil", "cloud/internal/channel", "TestInternalAddressesAreNotFetched"},
	{"A28", "cloud/internal/discord/verify.go", "!ed25519.Verify(key,", "false && !ed25519.Verify(key,", "cloud/internal/discord", "TestWrongSignaturesAreRefused"},
	{"A29", "cloud/internal/franchise/franchise.go", `"franchise-inquiry", Max: 5,`, `"franchise-inquiry", Max: 500,`, "cloud/internal/httpapi", "TestFranchiseInquiry"},
	{"A30", "cloud/internal/channel/import.go", "p.imported > maxBookings {", "p.imported > 100*maxBookings {", "cloud/internal/channel", "TestBudgetOfACalendar"},
	{"A31", "cloud/internal/httpapi/handle.go", "			answer = unavailable\n", "			answer = unavailable\n			answer.message = err.Error()\n", "cloud/internal/httpapi", "TestDatabaseOutage"},
	{"A32", "agent/internal/pass/controller.go", "	wrongPerLockout = 5\n", "	wrongPerLockout = 500\n", "agent/internal/pass", "TestLockouts"},
	{"A33", "cloud/internal/enroll/install.sh", `signed "$file" "$architecture" ||`, "true ||", "cloud/internal/enroll", "TestScript"},
}

// mutant returns the file without the defence.
func (d defence) mutant() (mutant, error) {
	text, err := os.ReadFile(d.file)
	if err != nil {
		return mutant{}, err
	}
	if n := bytes.Count(text, []byte(d.code)); n != 1 {
		return mutant{}, fmt.Errorf("%s: %q occurs %d times in %s, want once", d.row, d.code, n, d.file)
	}
	return mutant{path: d.file, text: bytes.Replace(text, []byte(d.code), []byte(d.gone), 1)}, nil
}

// withoutDefences removes the defence of each row, or of some, and runs its test. It fails if a test still passes.
func withoutDefences(ctx context.Context, only []string) error {
	var survivors []string
	for _, d := range defences {
		if len(only) > 0 && !slices.Contains(only, d.row) {
			continue
		}
		m, err := d.mutant()
		if err != nil {
			return err
		}
		start := time.Now()
		t := target{dir: d.dir, args: []string{"-run", exactly(d.test)}}
		outcome := t.judge(ctx, m, 5*time.Minute)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Printf("%-4s %-9s %s (%v)\n", d.row, outcome, d.test, time.Since(start).Round(time.Second))
		if outcome != killed && outcome != timedOut {
			survivors = append(survivors, d.row)
		}
	}
	if len(survivors) > 0 {
		return fmt.Errorf("no test failed without the defence of %s", strings.Join(survivors, ", "))
	}
	return nil
}

// exactly is the -run pattern of a test: each level matches a whole name.
func exactly(test string) string {
	if strings.ContainsRune(test, '|') {
		return test
	}
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	return strings.Join(parts, "/")
}
