package e2e

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"
)

// authenticator returns the code of an administrator's authenticator app (RFC 6238), computed independently of the service's
// code, now or later steps of 30 seconds in the future. The service accepts one step of skew, and each code once.
func authenticator(t testing.TB, secret string, later int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, time.Now().Unix()/30+later)
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[offset:])&0x7fffffff%1_000_000)
}

// secure enables the second factor and returns its secret.
func (p *page) secure(password string) (secret string) {
	p.t.Helper()
	p.open("/console/account")
	p.see("2단계 인증 켜기")
	value[bool](p, `([...document.querySelectorAll("input[type=password]")].at(-1).focus(), true)`)
	p.keys(password)
	p.press("2단계 인증 켜기")
	p.see("QR을 찍을 수 없으면")
	p.wait("a QR code", `document.querySelector("svg.qr path")`)
	secret = value[string](p, `document.querySelector("main code").textContent`)
	p.fill("인증 앱의 6자리 번호", authenticator(p.t, secret, 0))
	p.press("확인하고 켜기")
	p.see("2단계 인증을 켰어요", "로그인할 때 인증 앱의 번호를 물어봐요")
	return secret
}

// recoveryCodes makes new recovery codes and returns them.
func (p *page) recoveryCodes(password, code string) (codes []string) {
	p.t.Helper()
	value[bool](p, `([...document.querySelectorAll("input[type=password]")].at(-1).focus(), true)`)
	p.keys(password)
	p.press("복구 코드 만들기")
	p.wait("the question for a code", `document.querySelector("main input[autocomplete=one-time-code]")`)
	value[bool](p, `([...document.querySelectorAll("main input[autocomplete=one-time-code]")].at(-1).focus(), true)`)
	p.keys(code)
	p.press("복구 코드 만들기")
	p.see("이 코드는 지금만 볼 수 있어요")
	codes = value[[]string](p, `[...document.querySelectorAll("dialog .codes code")].map(c => c.textContent)`)
	if len(codes) != 10 {
		p.t.Fatalf("got recovery codes %v, want ten", codes)
	}
	p.survey("console-recovery-codes")
	p.on(desktop).press("닫기")
	return codes
}

// logInto fills in and submits the console's login form.
func (p *page) logInto(id, password string) {
	p.t.Helper()
	p.see("관리자 로그인")
	p.fill("아이디", id)
	p.fill("비밀번호", password)
	p.press("로그인")
}

// editing opens the headquarters' dialog for changing an administrator.
func (p *page) editing(id string) {
	p.t.Helper()
	p.open("/console/people")
	p.press("수정 "+id, "더 보기")
}

// TestConsoleAccounts changes passwords, second factors, sessions and rights, of the own account and of others.
func TestConsoleAccounts(t *testing.T) {
	t.Parallel()
	s := startStack(t, map[string]string{"YEOLDA_RATE_LIMITS": "off"})
	hq := console(t, s, "hq", "hq-demo")
	hq.expect("401", "403", "no valid credentials")
	manager, elsewhere := hq.another(t).on(desktop), hq.another(t).on(desktop)
	for _, p := range []*page{manager, elsewhere} {
		p.expect("401", "403", "no valid credentials")
		p.enterConsole("gangnam-manager", "gangnam-demo")
	}

	t.Run("a wrong password", func(t *testing.T) {
		p := hq.another(t).on(desktop)
		p.expect("401")
		p.open("/console/levels?branch=gangnam")
		p.logInto("hq", "not this one")
		p.see("아이디 또는 비밀번호가 올바르지 않습니다")
		p.survey("console-login")
		p.on(desktop).fill("비밀번호", "hq-demo")
		p.press("로그인")
		p.wait("the screen requested before the login", `location.pathname + location.search === "/console/levels?branch=gangnam"`)
	})

	t.Run("a session elsewhere is ended", func(t *testing.T) {
		m, e := manager.with(t), elsewhere.with(t)
		m.open("/console/account")
		m.wait("both sessions", `document.querySelectorAll("main tbody tr").length === 2`)
		m.see("Chrome · Linux", "지금 이 세션")
		m.expect("ERR_INTERNET_DISCONNECTED")
		m.offline(true, s.API+"/v2/admin/account/sessions/*")
		m.press("로그아웃 127.0.0.1")
		m.see("서버에 연결하지 못했어요") // a request that fails is not silent
		m.offline(false)
		m.press("로그아웃 127.0.0.1")
		m.wait("one session", `document.querySelectorAll("main tbody tr").length === 1`)
		e.press("장치")
		e.see("로그인이 끝났어요", "관리자 로그인")
		e.wait("the focus on the ID", `document.activeElement.id === "id"`)
		e.survey("console-session-over")
		e.on(desktop).logInto("gangnam-manager", "gangnam-demo")
		e.at("/console/gangnam/devices")
	})

	t.Run("one's own password", func(t *testing.T) {
		m, e := manager.with(t), elsewhere.with(t)
		m.open("/console/account")
		m.fill("지금 비밀번호", "wrong")
		m.fill("새 비밀번호", "a password of my own")
		m.press("비밀번호 변경")
		m.see("아이디 또는 비밀번호가 올바르지 않습니다")
		m.fill("지금 비밀번호", "gangnam-demo")
		m.press("비밀번호 변경")
		m.see("비밀번호를 바꿨어요")
		e.press("룸")
		e.see("로그인이 끝났어요") // all other sessions have ended
		e.logInto("gangnam-manager", "gangnam-demo")
		e.see("아이디 또는 비밀번호가 올바르지 않습니다")
		e.fill("비밀번호", "a password of my own")
		e.press("로그인")
		e.at("/console/gangnam/rooms")
	})

	t.Run("a session ends while a reservation or a form is open", func(t *testing.T) {
		date, midnight := dayAfter()
		admin := staff(t, s)
		start := midnight.Add(10 * time.Hour)
		admin.must("POST", "/admin/reservation", map[string]any{"branch": "gangnam", "room": 5, "startDateTime": wireTime(start), "endDateTime": wireTime(start.Add(time.Hour))}, nil)
		admin.must("POST", "/admin/payment", map[string]any{"name": "한지우"}, nil)
		day := "/console/gangnam/day/" + date
		e := elsewhere.with(t)
		e.open(day)
		end := func() {
			value[bool](e, `fetch("/api/admin/logout", {method: "POST"}).then(r => document.dispatchEvent(new Event("visibilitychange")) && r.ok)`)
			e.see("로그인이 끝났어요")
			e.logInto("gangnam-manager", "a password of my own")
			e.at(day)
		}
		e.press("한지우")
		e.see("예약 등록 hq")
		end()
		e.see("예약 등록 hq") // the same reservation
		e.press("닫기", "예약 등록", "이 시간 잡기")
		e.see("결제 없이 등록")
		end() // elsewhere reports an unhandled rejection, if there is one
		e.wait("the day", `document.querySelector(".grid .lane")`)
	})

	t.Run("the second step", func(t *testing.T) {
		m := manager.with(t)
		secret := m.secure("a password of my own")
		m.survey("console-account-totp")
		recovery := m.on(desktop).recoveryCodes("a password of my own", authenticator(t, secret, 1))
		m.press("로그아웃")
		m.logInto("gangnam-manager", "a password of my own")
		m.see("2단계 인증이 켜져 있어요")
		m.survey("console-login-totp")
		m.on(desktop).keys("000000") // the field has the focus
		m.press("로그인")
		m.wait("it is refused", `document.querySelector(".problem").textContent !== ""`)
		m.fill("인증 앱의 6자리 번호", recovery[3])
		m.press("로그인")
		m.see("예약 현황")
	})

	t.Run("the headquarters helps", func(t *testing.T) {
		h, m := hq.with(t), manager.with(t)
		h.editing("gangnam-manager")
		h.survey("console-person")
		h.on(desktop).press("2단계 인증 해제")
		h.see("2단계 인증을 없앨까요?")
		h.survey("console-question")
		h.on(desktop).press("2단계 인증 해제")
		h.see("저장했어요")
		h.editing("gangnam-manager")
		password := value[string](h, `document.querySelector("dialog input[readonly]").value`)
		h.press("이 비밀번호로 재설정")
		h.see("비밀번호를 새로 정할까요?")
		h.press("이 비밀번호로 재설정")
		h.see("비밀번호를 재설정했어요")
		m.press("문")
		m.see("로그인이 끝났어요")
		m.logInto("gangnam-manager", password) // without a code
		m.at("/console/gangnam/doors")

		h.editing("gangnam-manager")
		h.press("모두 로그아웃")
		h.see("모든 세션을 끝낼까요?")
		h.press("모두 로그아웃")
		h.see("세션을 끝냈어요")
		m.press("룸")
		m.see("로그인이 끝났어요")

		h.editing("gangnam-manager")
		h.press("정지")
		h.see("정지할까요?")
		h.press("정지")
		h.see("정지됨")
		m.logInto("gangnam-manager", password)
		m.see("아이디 또는 비밀번호가 올바르지 않습니다")
		h.editing("gangnam-manager")
		h.press("정지 해제")
		h.see("다시 로그인할 수 있게 할까요?")
		h.press("정지 해제")
		h.wait("again allowed", `!document.body.innerText.includes("정지됨")`)
		m.press("로그인")
		m.at("/console/gangnam/rooms")

		h.press("수정 gangnam-manager", "열다 홍대점", "저장")
		h.see("gangnam, hongdae")
		m.open("/console/hongdae/day")
		m.see("예약 현황", "열다 홍대점")
	})

	t.Run("the second step off again", func(t *testing.T) {
		h := hq.with(t)
		secret := h.secure("hq-demo")
		h.fill("인증 앱의 6자리 번호", authenticator(t, secret, 1))
		h.press("끄기")
		h.see("2단계 인증을 껐어요")
	})

	t.Run("written down", func(t *testing.T) {
		h := hq.with(t)
		h.open("/console/gangnam/audit")
		h.choose("종류", "관리자")
		h.press("거르기")
		h.see("2단계 인증 켜기", "2단계 인증 끄기", "복구 코드 발급", "복구 코드로 로그인", "비밀번호 변경", "세션 종료", "관리자 정지", "관리자 정지 해제", "관리자 변경", "로그인")
		for _, row := range value[[]string](h, `[...document.querySelectorAll("main tbody tr")].map(r => r.innerText)`) {
			if !strings.Contains(row, "127.0.0.1") {
				t.Errorf("from where: %s", row)
			}
		}
	})
}
