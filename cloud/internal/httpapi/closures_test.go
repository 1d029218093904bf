package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type closed struct {
	Conflicts []struct{ Branch, Type, Room, OrderID string }
	Applied   bool
}

// TestClosureShowsWhatLiesOutsideTheHours: a partner has sold hours in which the branch is not open; its guest comes on the closed day, too.
func TestClosureShowsWhatLiesOutsideTheHours(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	from := s.Clock.Now().In(seoul).AddDate(0, 0, 1)
	_, err := s.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, amount, paid_at, created_by)
		select b.id, m.id, 'DONE', 'PARTNER', at, at + interval '30 minutes', tstzrange(at, at + interval '40 minutes'), 0, now(), 'partner'
		from branch b join room m on m.branch_id = b.id and m.no = 1, generate_series(0, 6) day,
		     lateral (select ($1::date + day + time '23:00') at time zone 'Asia/Seoul' as at) a
		where b.code = 'hongdae'`, from.Format(time.DateOnly))
	if err != nil {
		t.Fatal(err)
	}
	var result closed
	c.HQ.Post("/v2/admin/closures", map[string]any{"branches": []string{"hongdae"}, "reason": "공사", "preview": true,
		"rule": map[string]string{"from": from.Format(time.DateOnly), "to": from.AddDate(0, 0, 6).Format(time.DateOnly)}}).OK(t).Into(t, &result)
	if n := len(result.Conflicts); n == 0 || n == 7 { // it is closed on Mondays anyway
		t.Errorf("%d conflicts, want those of the days that would be open", n)
	}
}

// TestClosureIsUndoneAsItWas: an undo removes only what its closure has added, and nothing from a branch that has changed since.
func TestClosureIsUndoneAsItWas(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s)
	day := s.Clock.Now().In(seoul).AddDate(0, 0, 5).Format(time.DateOnly)
	type result struct {
		Closed []struct {
			Branch   string   `json:"branch"`
			Revision int64    `json:"revision"`
			Kept     []string `json:"kept"`
		}
	}
	request := func(branches []string, more map[string]any) map[string]any {
		body := map[string]any{"branches": branches, "reason": "점검", "rule": map[string]string{"from": day, "to": day}}
		maps.Copy(body, more)
		return body
	}
	closures := func(branch string) (days []string) {
		t.Helper()
		var settings struct {
			Closures []struct{ From, Reason string }
		}
		c.HQ.Get("/v2/admin/branches/"+branch+"/settings").OK(t).Into(t, &settings)
		for _, closure := range settings.Closures {
			days = append(days, closure.From+" "+closure.Reason)
		}
		return days
	}
	const path = "/v2/admin/closures"
	both := []string{"gangnam", "hongdae"}
	c.Other.Post(path, request([]string{"hongdae"}, nil)).OK(t)
	var first result
	c.HQ.Post(path, request(both, nil)).OK(t).Into(t, &first)
	c.HQ.Post(path, request(both, map[string]any{"undo": true, "closed": first.Closed})).OK(t)
	if in, other := closures("gangnam"), closures("hongdae"); len(in) != 0 || !slices.Equal(other, []string{day + " 점검"}) {
		t.Errorf("after the undo, gangnam is closed on %q and hongdae on %q, want only the closure of the other administrator", in, other)
	}

	c.HQ.Post(path, request([]string{"gangnam"}, nil)).OK(t).Into(t, &first)
	c.Manager.Post(path, request([]string{"gangnam"}, nil)).OK(t) // wants the same
	undo := request([]string{"gangnam"}, map[string]any{"undo": true, "closed": first.Closed})
	c.HQ.Post(path, undo).Fails(t, http.StatusConflict, "SettingConflictException", "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요.")
	if in := closures("gangnam"); !slices.Equal(in, []string{day + " 점검"}) {
		t.Errorf("after the refused undo, gangnam is closed on %q, want the day", in)
	}
	first.Closed[0].Kept = []string{"soon"}
	refuses(t, "not a day", c.HQ.Post(path, request([]string{"gangnam"}, map[string]any{"undo": true, "closed": first.Closed})), "kept")
}

// TestClosures: a preview shows the reservations on the closed days and changes nothing; the closure cancels none of them,
// and further reservations there are rejected.
func TestClosures(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := newCast(t, s) // with a paid hour in room 1, three hours from now
	day := c.start
	guest := s.Client(t)
	guest.Post("/reservation", holdBody(2, day, time.Hour)).OK(t)
	body := func(preview bool) map[string]any {
		return map[string]any{"branches": []string{"gangnam"}, "reason": "시설 점검", "preview": preview,
			"rule": map[string]any{"from": day.Format(time.DateOnly), "to": day.Format(time.DateOnly)}}
	}
	ask := func(preview bool) (result closed) {
		t.Helper()
		c.Manager.Post("/v2/admin/closures", body(preview)).OK(t).Into(t, &result)
		return result
	}
	preview := ask(true)
	kinds := []string{}
	for _, conflict := range preview.Conflicts {
		kinds = append(kinds, conflict.Branch+" "+conflict.Type)
	}
	slices.Sort(kinds)
	if preview.Applied || !slices.Equal(kinds, []string{"gangnam BOOKING", "gangnam PAID"}) {
		t.Fatalf("preview: %+v", preview)
	}
	s.Client(t).Post("/reservation", holdBody(3, day, time.Hour)).OK(t) // nothing is closed yet
	if applied := ask(false); !applied.Applied || len(applied.Conflicts) != 3 {
		t.Fatalf("closure: %+v", applied)
	}
	s.Client(t).Post("/reservation", holdBody(4, day, time.Hour)).Fails(t, 400, "IllegalArguemntError", "")
	guest.Get("/v2/hold").Fails(t, 401, "ResourceTimeOutException", "") // its hold was not paid
	var done int
	if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from reservation where state = 'DONE' and start_at = $1`, day).Scan(&done); err != nil || done != 1 {
		t.Errorf("%d paid reservations on the closed day, %v", done, err)
	}
	if again := ask(false); !again.Applied || len(again.Conflicts) != 1 || again.Conflicts[0].Type != "PAID" {
		t.Errorf("the same closure again: %+v, want the paid stay, which is still there", again)
	}
	var settings struct {
		Closures []struct{ From, To, Reason string }
	}
	c.Manager.Get("/v2/admin/branches/gangnam/settings").OK(t).Into(t, &settings)
	if len(settings.Closures) != 1 {
		t.Errorf("closures: %+v", settings.Closures)
	}
	reasonOf := func(want string) {
		t.Helper()
		var calendar struct {
			Dates []struct{ Date, Status, Reason string }
		}
		c.Nobody.Get("/v2/branches/gangnam/calendar?yearMonth="+day.In(seoul).Format("2006-01")).OK(t).Into(t, &calendar)
		for _, d := range calendar.Dates {
			if d.Date == day.In(seoul).Format(time.DateOnly) && (d.Status != "closed" || d.Reason != want) {
				t.Errorf("calendar %+v, want closed because of %s", d, want)
			}
		}
	}
	other := body(false)
	other["reason"] = "공사"
	c.Manager.Post("/v2/admin/closures", other).OK(t)
	reasonOf("공사")
	other["undo"] = true
	c.Manager.Post("/v2/admin/closures", other).OK(t)
	reasonOf("시설 점검")
	undo := body(false)
	undo["undo"] = true
	c.Manager.Post("/v2/admin/closures", undo).OK(t)
	c.Manager.Get("/v2/admin/branches/gangnam/settings").OK(t).Into(t, &settings)
	if len(settings.Closures) != 0 {
		t.Errorf("after the undo, the closures are %+v", settings.Closures)
	}
	ask(false)

	weekly := body(false)
	weekly["rule"] = map[string]any{"weekday": 1, "nth": 2}
	c.Manager.Post("/v2/admin/closures", weekly).OK(t)
	c.Manager.Get("/v2/admin/branches/gangnam/settings").OK(t).Into(t, &settings)
	if n := len(settings.Closures); n < 24 || n > 26 {
		t.Errorf("%d closures, want one each month of two years", n)
	}
	for _, closure := range settings.Closures {
		if date, err := time.Parse(time.DateOnly, closure.From); closure.From != day.Format(time.DateOnly) &&
			(err != nil || date.Weekday() != time.Monday || date.Day() < 8 || date.Day() > 14) {
			t.Errorf("%s is not a second Monday", closure.From)
		}
	}

	for name, bad := range map[string]map[string]any{
		"no branch":    {"branches": []string{}, "rule": map[string]any{"yearly": "12-25"}, "reason": "a"},
		"no text":      {"branches": []string{"a\x00"}, "rule": map[string]any{"yearly": "12-25"}, "reason": "a"},
		"no rule":      {"branches": []string{"gangnam"}, "reason": "a"},
		"no reason":    {"branches": []string{"gangnam"}, "rule": map[string]any{"yearly": "12-25"}},
		"empty rule":   {"branches": []string{"gangnam"}, "rule": map[string]any{}, "reason": "a"},
		"two rules":    {"branches": []string{"gangnam"}, "rule": map[string]any{"yearly": "12-25", "nth": 1, "weekday": 1}, "reason": "a"},
		"no such day":  {"branches": []string{"gangnam"}, "rule": map[string]any{"yearly": "02-30"}, "reason": "a"},
		"reversed":     {"branches": []string{"gangnam"}, "rule": map[string]any{"from": "2027-01-02", "to": "2027-01-01"}, "reason": "a"},
		"half a span":  {"branches": []string{"gangnam"}, "rule": map[string]any{"from": "2027-01-02"}, "reason": "a"},
		"weekday zero": {"branches": []string{"gangnam"}, "rule": map[string]any{"weekday": 0, "nth": 1}, "reason": "a"},
	} {
		if answer := c.Manager.Post("/v2/admin/closures", bad); answer.HTTP != 400 {
			t.Errorf("%s: %d %s", name, answer.HTTP, answer.Raw)
		}
	}
	both := body(false)
	both["branches"] = []string{"gangnam", "hongdae"}
	c.Manager.Post("/v2/admin/closures", both).Fails(t, 403, "AuthorizationException", "")
	both["branches"] = []string{"nowhere"}
	c.HQ.Post("/v2/admin/closures", both).Fails(t, 404, "ResourceNotFoundException", "")
}

// patiently repeats a request that a busy machine has rejected after its time limit, which changes nothing.
func patiently(request func() servicetest.Answer) (answer servicetest.Answer) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if answer = request(); answer.HTTP != http.StatusServiceUnavailable {
			break
		}
	}
	return answer
}

// TestClosureAgainstHolds closes a day while 200 guests take holds on it: none is left on the day afterwards.
func TestClosureAgainstHolds(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
	admin := s.Admin(t, "hq", "hq-demo")
	day := slot(s, 48*time.Hour)
	var wg sync.WaitGroup
	for i := range 200 {
		client := s.Client(t)
		wg.Go(func() {
			client.Post("/reservation", holdBody(i%6+1, day.Add(time.Duration(i/6)*50*time.Minute), 30*time.Minute))
		})
	}
	date := func(i int) string { return day.AddDate(0, 0, i).Format(time.DateOnly) }
	patiently(func() servicetest.Answer {
		return admin.Post("/v2/admin/closures", map[string]any{"branches": []string{"gangnam"}, "reason": "점검", "rule": map[string]string{"from": date(0), "to": date(2)}})
	}).OK(t)
	wg.Wait()
	var held int
	err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from reservation where state = 'HOLD' and start_at >= $1`, day).Scan(&held)
	if err != nil || held != 0 {
		t.Error(fmt.Sprintf("%d holds on the closed days", held), err)
	}
}

// TestClosureChangesFiftyBranchesOrNone: a request of at most fifty branches that fails has changed none of them, so the console sends as many
// at once. One of more has changed the earlier groups of fifty.
func TestClosureChangesFiftyBranchesOrNone(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manyBranches(t, s)
	admin := s.Admin(t, "hq", "hq-demo")
	day := slot(s, 48*time.Hour).Format(time.DateOnly)
	branches := make([]string, 100)
	for i := range branches {
		branches[i] = fmt.Sprint("many-", i+1)
	}
	var done struct {
		Closed []map[string]any
	}
	send := func(branches []string, more map[string]any) servicetest.Answer {
		t.Helper()
		body := map[string]any{"branches": branches, "reason": "점검", "rule": map[string]string{"from": day, "to": day}}
		maps.Copy(body, more)
		return patiently(func() servicetest.Answer { return admin.Post("/v2/admin/closures", body) })
	}
	send(branches, nil).OK(t).Into(t, &done)
	if _, err := s.DB.Pool.Exec(t.Context(), `update branch set revision = revision + 1 where code = $1`, "many-60"); err != nil {
		t.Fatal(err)
	}
	for _, group := range []struct{ from, to, status, left int }{
		{50, 100, http.StatusConflict, 100},
		{0, 100, http.StatusConflict, 50},
		{50, 59, http.StatusOK, 41},
	} {
		undo := map[string]any{"undo": true, "closed": done.Closed[group.from:group.to]}
		if answer := send(branches[group.from:group.to], undo); answer.HTTP != group.status {
			t.Errorf("undo of branches %d to %d: status %d, want %d", group.from+1, group.to, answer.HTTP, group.status)
		}
		var left int
		if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from branch where code like 'many-%' and schedule::text like '%점검%'`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left != group.left {
			t.Errorf("after the undo of branches %d to %d, %d are closed, want %d", group.from+1, group.to, left, group.left)
		}
	}
}

// TestClosureOfAThousandBranches closes them all at once, after a preview that lists the reservations first and changes nothing.
func TestClosureOfAThousandBranches(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	manyBranches(t, s)
	admin := s.Admin(t, "hq", "hq-demo")
	day := slot(s, 48*time.Hour)
	if _, err := s.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount)
		select b.id, r.id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $2), '카드', 1000
		from branch b join room r on r.branch_id = b.id where b.code like 'many-%7' and r.no = 1`, day, day.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	branches := make([]string, 1000)
	for i := range branches {
		branches[i] = fmt.Sprint("many-", i+1)
	}
	ask := func(preview bool) (result closed) {
		t.Helper()
		began := time.Now()
		patiently(func() servicetest.Answer {
			return admin.Post("/v2/admin/closures", map[string]any{
				"branches": branches, "reason": "점검", "preview": preview, "rule": map[string]string{"from": day.Format(time.DateOnly), "to": day.Format(time.DateOnly)},
			})
		}).OK(t).Into(t, &result)
		t.Logf("preview %v: %v", preview, time.Since(began).Round(time.Millisecond))
		return result
	}
	closures := func() (n int) {
		t.Helper()
		if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from branch where code like 'many-%' and schedule::text like '%점검%'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if preview := ask(true); preview.Applied || len(preview.Conflicts) != 100 || closures() != 0 {
		t.Fatalf("preview: applied %v, %d conflicts, %d branches closed; want 100 conflicts and no change", preview.Applied, len(preview.Conflicts), closures())
	}
	if applied := ask(false); !applied.Applied || len(applied.Conflicts) != 100 || closures() != 1000 {
		t.Errorf("applied %v, %d conflicts, %d branches closed; want 100 and 1000", applied.Applied, len(applied.Conflicts), closures())
	}
}
