package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// consoleSources are the TypeScript files of the console.
const consoleSources = "../../cloud/internal/web/src/console"

// draftForm is a form of the console that keeps what is typed in.
type draftForm struct {
	name   string   // of its draft
	screen string   // its address below /console
	open   []string // buttons that lead to the form
	row    string   // button that adds the row of the field
	field  string   // label of one field
	text   string   // what is typed into it; of a drop-down: the value that is selected
}

// draftForms lists the forms of the console, but for those that other tests drive. date is a day with the paid reservation id.
func draftForms(date, id string) []draftForm {
	record, guest := "gangnam/day/"+date+"?r="+id, "gangnam/guest/"+id
	return []draftForm{
		{"agent-settings", "gangnam/devices/agent-gangnam", nil, "", "설정 파일(TOML)", "broker = 'mqtt://192.0.2.1'"},
		{"arrival", "gangnam/settings", []string{"단계 추가"}, "", "안내", "파란 문으로 들어오세요."},
		{"block", guest, []string{"예약 막기"}, "", "사유", "기물 파손"},
		{"by-hand", record, []string{"직접 환불함"}, "", "환불 방법", "계좌 이체"},
		{"cancel", record, []string{"취소·환불"}, "", "사유 (선택)", "mistake"},
		{"channel", "gangnam/settings", []string{"채널 추가"}, "", "채널", "스페이스"},
		{"climate", "gangnam/climate", []string{"수정 2번 룸"}, "", "최저 온도(°C)", "22.5"},
		{"closures", "closures", nil, "", "사유", "태풍"},
		{"company", "company", nil, "", "고객센터 전화", "02-9999-0000"},
		{"contact", record, []string{"연락처 정정"}, "", "이름", "윤서연"},
		{"contacts", "alerts", nil, "사람 추가", "이름", "김당직"},
		{"contacts", "gangnam/settings", nil, "사람 추가", "이름", "김당직"},
		{"entity", "company", []string{"사업자 추가"}, "", "사업자 코드", "busan"},
		{"legal-text", "company", []string{"새 버전 만들기"}, "", "약관 버전", "2030-01-01"},
		{"move", record, []string{"시간·룸 변경"}, "", "사유 (선택)", "룸 고장"},
		{"new-branch", "overview", []string{"지점 추가"}, "", "지점 코드", "busan"},
		{"note", guest, nil, "", "새 메모", "조용한 룸을 좋아해요"},
		{"note", "gangnam/day/" + date, []string{"인수인계"}, "", "새 메모", "전구 교체"},
		{"passkey", "account", nil, "", "패스키 이름", "사무실 노트북"},
		{"person", "people", []string{"관리자 추가"}, "", "아이디", "night-shift"},
		{"photo", "gangnam/settings", []string{"사진과 소개 2번 룸"}, "", "사진 설명", "창가 자리"},
		{"prices", "gangnam/settings", []string{"요금 규칙 2번 룸"}, "규칙 추가", "10분", "4400"},
		{"profile", "gangnam/settings", []string{"사진과 소개 2번 룸"}, "", "소개", "햇볕이 잘 들어요."},
		{"refund", record, []string{"부분 환불"}, "", "환불 사유", "소음"},
		{"register", "gangnam/day/" + date, []string{"예약 등록", "이 시간 잡기"}, "", "이름", "최지우"},
		{"resolve", "gangnam/money", []string{"처리 완료로 표시"}, "", "처리 내용", "직접 환불함"},
		{"rollout", "rollout", []string{"배포 시작"}, "", "버전", "9.9.9"},
		{"room", "gangnam/settings", []string{"수정 2번 룸"}, "", "기기", "새 베드"},
		{"rooms", "gangnam/opening", []string{"표에서 붙여넣기"}, "", "룸 목록", "7, 새 베드"},
		{"rotate", record, []string{"열쇠 교체"}, "", "사유", "휴대폰을 잃어버림"},
		{"settings", "gangnam/settings", nil, "", "전화", "02-1234-5678"},
		{"token", "integrations", []string{"토큰 만들기"}, "", "프로그램 이름", "회계"},
		{"webhook", "integrations", []string{"받는 주소 추가"}, "", "주소", "https://receiver.example/events"},
	}
}

// TestConsoleDrafts types into each form of the console, and finds the text again after the form was closed, after another
// screen and after a reload. Discarding brings back what is stored.
func TestConsoleDrafts(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	awaitAgents(t, s, "gangnam")
	date, midnight := dayAfter()
	order := newBrowser(t, s).deposited(s, 1, 30000, "01077778888", midnight.Add(12*time.Hour))
	chargeWithoutOrder(t, s, "order-of-nobody", 77000)
	hq := staff(t, s)
	hq.must("POST", "/v2/admin/reconciliation", nil, nil)
	id := ""
	until(t, "the deposit is known", func() bool {
		var month struct {
			Payments []struct{ ID, OrderID, State string }
		}
		hq.must("GET", "/v2/admin/branches/gangnam/payments?yearMonth="+time.Now().In(seoul).Format("2006-01"), nil, &month)
		for _, p := range month.Payments {
			if p.OrderID == order && p.State == "DONE" {
				id = p.ID
			}
		}
		return id != ""
	})
	address, err := url.Parse(s.Pages)
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t, "http://localhost:"+address.Port()).on(desktop) // browsers make no passkey for an IP address
	p.expect("401")
	p.enterConsole("hq", "hq-demo")
	for _, form := range draftForms(date, id) {
		t.Run(form.name, func(t *testing.T) { form.drive(p.with(t)) })
	}
}

// find is an expression of the field of the form: the last one with its label, in the open dialog or otherwise in the page.
func (f draftForm) find() string {
	return `(() => {
		const scope = [...document.querySelectorAll("dialog[open]")].pop() || document;
		const labelled = [...scope.querySelectorAll("label")].filter(l => l.innerText.trim() === ` + quoted(f.field) + `).map(l => l.control);
		const named = [...scope.querySelectorAll("input, textarea, select")].filter(e => e.ariaLabel === ` + quoted(f.field) + `);
		return [...labelled, ...named].filter(Boolean).pop();
	})()`
}

// drive types into the form, leaves it in three ways, and discards the draft.
func (f draftForm) drive(p *page) {
	notice := `[...([...document.querySelectorAll("dialog[open]")].pop() || document).querySelectorAll(".notice")].some(n => n.innerText.includes("저장하지 않은 내용"))`
	show := func() {
		p.t.Helper()
		p.wait("the screen", `document.querySelector("main h1, main h2")`)
		p.press(f.open...)
		if f.row == "" {
			p.wait("the field", f.find())
		}
	}
	kept := func(how string) {
		p.t.Helper()
		show()
		p.wait("the text after "+how, f.find()+`?.value === `+quoted(f.text))
		p.wait("the notice after "+how, notice)
	}
	p.open("/console/" + f.screen)
	show()
	before := value[string](p, f.find()+`?.value ?? ""`)
	if f.row != "" {
		p.press(f.row)
	}
	if value[bool](p, f.find()+`.tagName === "SELECT"`) {
		value[bool](p, `(e => { e.value = `+quoted(f.text)+`; e.dispatchEvent(new Event("change", {bubbles: true})); return true })(`+f.find()+`)`)
	} else {
		value[bool](p, `(e => { e.focus(); e.select(); return true })(`+f.find()+`)`)
		p.do("type", chromedp.KeyEvent(f.text))
	}
	if n := p.dialogs(); n > 0 {
		p.press("닫기")
		p.wait("the dialog is closed", fmt.Sprintf(`document.querySelectorAll("dialog[open]").length < %d`, n))
		kept("closing")
	}
	p.open("/console/levels")
	p.wait("another screen", `document.querySelector("main h1, main h2")`)
	p.open("/console/" + f.screen)
	kept("another screen and a reload")
	p.press("버리기")
	p.wait("what is stored", `(`+f.find()+`?.value ?? "") === `+quoted(before)+` && !(`+notice+`)`)
	p.open("/console/" + f.screen)
	show()
	p.wait("no draft is left", `(`+f.find()+`?.value ?? "") === `+quoted(before)+` && !(`+notice+`)`)
}

// otherDrafts are driven by other tests.
var otherDrafts = map[string]string{
	"quarantine": "TestConsoleQuarantine",
}

// undrafted lists the files with text fields that keep no draft, and why.
var undrafted = map[string]string{
	"account.ts":          "passwords and codes",
	"audit.ts":            "filters",
	"branches.ts":         "a filter",
	"confirm.ts":          "passwords and codes",
	"desk.ts":             "the bank account of a guest",
	"facts.ts":            "fields of forms in other files",
	"keypads.ts":          "PINs",
	"login.ts":            "passwords and codes",
	"overview.ts":         "a filter",
	"parts.ts":            "the fields themselves",
	"refund-account.ts":   "the bank account of a guest",
	"reports.ts":          "filters",
	"search.ts":           "a search",
	"settings-refunds.ts": "part of the form of settings.ts",
	"settings-rows.ts":    "part of the forms of settings.ts and settings-prices.ts",
	"settlement.ts":       "a filter",
}

// TestEachFormKeepsADraft reads the sources: a file of the console with a text field keeps drafts or is listed with the reason,
// and each draft is driven by a test.
func TestEachFormKeepsADraft(t *testing.T) {
	t.Parallel()
	driven := maps.Clone(otherDrafts)
	for _, form := range draftForms("", "") {
		driven[form.name] = "TestConsoleDrafts"
	}
	field := regexp.MustCompile(`\b(input|area|refundAccount)\(|"textarea"|textInput\(`)
	draft := regexp.MustCompile("(?:keepTyped|keptAttempt)\\(\\s*[`\"]([a-z-]+?)(?:-\\$|[`\"])|`console-draft-([a-z-]+?)-\\$")
	var files, names []string
	err := filepath.WalkDir(consoleSources, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "draft.ts" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		drafts := draft.FindAllSubmatch(source, -1)
		_, excused := undrafted[entry.Name()]
		if needs, keeps := field.Match(source) && !excused, len(drafts) > 0; needs != keeps {
			t.Errorf("%s: needs drafts: %v, keeps drafts: %v", entry.Name(), needs, keeps)
		}
		files = append(files, entry.Name())
		for _, name := range drafts {
			names = append(names, string(slices.Concat(name[1], name[2])))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if got, want := slices.Compact(names), slices.Sorted(maps.Keys(driven)); !slices.Equal(got, want) {
		t.Errorf("the sources keep the drafts\n%v, tests drive\n%v", got, want)
	}
	for file := range undrafted {
		if !slices.Contains(files, file) {
			t.Errorf("%s does not exist", file)
		}
	}
}

// TestConsoleDraftOfAnOldContact: an administrator edits the name of a guest, closes the dialog, and a colleague corrects the number
// meanwhile. The draft does not put the earlier number back, whose owner would receive the key.
func TestConsoleDraftOfAnOldContact(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	date, midnight := dayAfter()
	newBrowser(t, s).purchase(s, "gangnam", 1, 30000, "01077770001", "카드", midnight.Add(12*time.Hour))
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/gangnam/day/" + date)
	const block = `[...document.querySelectorAll(".lane")][0].querySelector(".block.paid")`
	p.wait("the paid reservation", block)
	value[bool](p, `(`+block+`.click(), true)`)
	p.press("연락처 정정")
	p.fill("이름", "홍길순")
	p.press("돌아가기")
	value[bool](p, `fetch("/api/v2/admin/reservations/" + location.search.slice(3) + "/contact", {
		method: "PATCH", headers: {"Content-Type": "application/json"}, body: JSON.stringify({mobileNum: "01088880002", reason: "오타"}),
	}).then((answer) => answer.ok)`)
	p.wait("the corrected number", `document.querySelector(".record").innerText.includes("8888")`)
	p.press("연락처 정정")
	p.see("저장하지 않은 내용을 다시 불러왔어요")
	p.fill("사유", "이름 정정")
	p.press("연락처 정정")
	p.wait("the corrected name", `document.querySelector(".record").innerText.includes("홍길순")`)
	if got := value[string](p, `document.querySelector(".record").innerText`); !strings.Contains(got, "8888") || strings.Contains(got, "7777") {
		t.Errorf("the record does not show the number that the colleague entered: %s", got)
	}
}

// TestConsoleContactsOfTwo: an administrator edits the list of alert contacts that a colleague has changed since. Saving it would delete the
// person whom the colleague has added.
func TestConsoleContactsOfTwo(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/alerts")
	p.press("사람 추가")
	p.fill("이름", "주간")
	p.fill("번호·메일·주소", "010-1111-2222")
	const put = `fetch("/api/v2/admin/alert-contacts", { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ alertContacts: [
		{ name: "야간", channel: "sms", to: "010-3333-4444", kinds: null, hours: null, escalateAfterMinutes: 0 }] }) }).then((answer) => answer.ok)`
	if !value[bool](p, put) {
		t.Fatal("the colleague could not save")
	}
	p.press("연락처 저장")
	p.see("다른 관리자가 연락처를 바꿨어요")
	p.open("/console/alerts")
	p.wait("the contact of the colleague", `[...document.querySelectorAll("fieldset input")].some((i) => i.value === "야간")`)
}

// TestConsoleRightsOfTwo: while an administrator edits a colleague's account or the company, another one changes the same. Saving does not
// return rights that were withdrawn, and what was typed is kept for a second attempt.
func TestConsoleRightsOfTwo(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	colleague := staff(t, s)
	p := console(t, s, "hq", "hq-demo")
	p.open("/console/people")
	p.press("수정 gangnam-manager", "열다 홍대점")
	p.press("닫기", "수정 gangnam-manager")
	p.wait("the ticked branch is kept", `[...document.querySelectorAll("dialog .check")].some((l) => l.innerText === "열다 홍대점" && l.control.checked)`)
	colleague.must("PUT", "/v2/admin/administrators/gangnam-manager", map[string]any{"role": "viewer", "branches": []string{"jamsil"}}, nil)
	p.press("저장")
	p.see("그 사이에 다른 관리자가 바꿨어요")
	var people struct {
		Administrators []struct {
			ID, Role string
			Branches []string
		}
	}
	colleague.must("GET", "/v2/admin/administrators", nil, &people)
	for _, a := range people.Administrators {
		if a.ID == "gangnam-manager" && (a.Role != "viewer" || !slices.Equal(a.Branches, []string{"jamsil"})) {
			t.Errorf("the rights are %+v, want those of the colleague", a)
		}
	}

	var company struct{ Company, Brand map[string]any }
	colleague.must("GET", "/v2/admin/company", nil, &company)
	p.open("/console/company")
	p.fill("대표자", "김새로")
	company.Company["phone"] = "02-9999-0000"
	colleague.must("PUT", "/v2/admin/company", company, nil)
	p.press("저장")
	p.see("그 사이에 다른 관리자가 바꿨어요")
	p.open("/console/company")
	p.see("저장하지 않은 내용을 다시 불러왔어요")
	p.press("저장")
	p.see("저장했어요")
	colleague.must("GET", "/v2/admin/company", nil, &company)
	if company.Company["phone"] != "02-9999-0000" || company.Company["representative"] != "김새로" {
		t.Errorf("the company is %+v, want what each of the two has changed", company.Company)
	}

	p.open("/console/closures")
	p.press("열다 홍대점")
	p.open("/console/closures")
	p.see("저장하지 않은 내용을 다시 불러왔어요", "1곳 선택")

	// A branch with the longest name, whose rooms are not on sale yet, is no wider than the screen.
	colleague.must("POST", "/v2/admin/branches", map[string]any{"branch": "long", "nameKo": strings.Repeat("긴", 100), "nameEn": strings.Repeat("W", 100), "copyFrom": "gangnam"}, nil)
	for _, s := range []screen{narrow, {"tablet", 1024, 768}} {
		p.on(s).open("/console/long/settings")
		p.see("1번 룸", "판매 시작")
		p.fits("settings on " + s.name)
		p.open("/console/long/doors")
		p.see("문이 연결되지 않았어요")
		p.fits("doors on " + s.name)
	}
}

// TestConsoleRoomOfTwo: while a form of a room or of its price rules is open, a colleague changes the room. The form changes only what was
// edited in it, and is refused where the colleague has changed the same.
func TestConsoleRoomOfTwo(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	const rooms = "/v2/admin/branches/gangnam/rooms/1"
	colleague := staff(t, s)
	type room struct {
		RoomNo, Machine string
		TurnoverMinutes int
		Pricing         struct{ Min60 int }
	}
	first := func() room {
		t.Helper()
		var settings struct{ Rooms []room }
		colleague.must("GET", "/v2/admin/branches/gangnam/settings", nil, &settings)
		return settings.Rooms[0]
	}
	p := console(t, s, "hq", "hq-demo")
	p.expect("409")
	p.open("/console/gangnam/settings")
	p.press("수정 1번 룸")
	p.fill("기기", "아쿠아 스파 베드 B2")
	colleague.must("PUT", rooms, map[string]any{"min60": 33000, "turnoverMinutes": 20}, nil)
	p.press("저장")
	p.see("저장했어요")
	if got := first(); got.Machine != "아쿠아 스파 베드 B2" || got.Pricing.Min60 != 33000 || got.TurnoverMinutes != 20 {
		t.Errorf("the room is %+v, want the machine of one administrator, price and turnover of the other", got)
	}

	p.press("수정 1번 룸")
	p.fill("60분", "35000")
	colleague.must("PUT", rooms, map[string]any{"min60": 34000}, nil)
	p.press("저장")
	p.see("다른 관리자가 이 룸을 바꿨어요")
	if got := first(); got.Pricing.Min60 != 34000 {
		t.Errorf("60 minutes cost %d, want the 34000 of the other administrator", got.Pricing.Min60)
	}
	p.press("닫기")

	p.press("요금 규칙 1번 룸")
	p.press("규칙 추가")
	p.date("60분", "45000")
	rule := map[string]any{"from": "2030-01-01", "days": []int{6}, "hours": nil, "min60": 50000}
	colleague.must("PUT", rooms+"/prices", map[string]any{"rules": []any{rule}}, nil)
	p.press("저장")
	p.see("그 사이에 변경되었습니다")
	var prices struct{ Rules []struct{ From string } }
	colleague.must("GET", rooms+"/prices", nil, &prices)
	if len(prices.Rules) != 1 || prices.Rules[0].From != "2030-01-01" {
		t.Errorf("the rules are %+v, want that of the other administrator", prices.Rules)
	}
}
