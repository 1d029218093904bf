package httpapi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// If the headquarters adds or disables an administrator or changes rights, the change takes effect immediately.
func TestAdministratorsInTheConsole(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const all, secret = "/v2/admin/administrators", "a good long password"
	add := func(id, password, role string, branches ...string) servicetest.Answer {
		return hq.Post(all, map[string]any{"id": id, "password": password, "role": role, "branches": branches})
	}
	add("jamsil-manager", secret, "manager", "jamsil").OK(t)
	add("jamsil-manager", secret, "manager", "jamsil").Fails(t, 409, "ResourceAlreadyExistException", "이미 사용 중인 아이디입니다.")
	add("a-manager", secret, "manager", "busan").Fails(t, 404, "ResourceNotFoundException", "해당 지점을 찾을 수 없습니다.")
	for what, answer := range map[string]servicetest.Answer{
		"short password": add("a-manager", "short", "manager", "jamsil"), "odd id": add("A Manager", secret, "manager", "jamsil"),
		"odd role": add("a-manager", secret, "owner", "jamsil"), "no branch": add("a-manager", secret, "manager"), "hq with a branch": add("a-manager", secret, "hq", "jamsil"),
	} {
		refuses(t, what, answer)
	}

	jamsil := s.Admin(t, "jamsil-manager", secret)
	rooms := func(branch string) servicetest.Answer {
		return jamsil.Patch("/admin/machines/"+branch+"/1", map[string]bool{"enabled": true})
	}
	rooms("jamsil").OK(t)
	says(t, "another branch", rooms("hongdae"), outOfScope)
	hq.Put(all+"/jamsil-manager", map[string]any{"role": "manager", "branches": []string{"jamsil", "hongdae"}}).OK(t)
	rooms("hongdae").OK(t)
	hq.Put(all+"/jamsil-manager", map[string]any{"role": "viewer", "branches": []string{"jamsil"}}).OK(t)
	says(t, "a viewer", rooms("jamsil"), notAuthorized)
	hq.Patch(all+"/jamsil-manager", map[string]bool{"disabled": true}).OK(t)
	says(t, "kept out", rooms("jamsil"), noSuchSession)
	login := map[string]string{"id": "jamsil-manager", "password": secret}
	jamsil.Post("/admin/login", login).Fails(t, 401, "AuthenticationError", "")
	hq.Patch(all+"/jamsil-manager", map[string]bool{"disabled": false}).OK(t)
	jamsil.Post("/admin/login", login).OK(t)
	hq.Delete(all+"/jamsil-manager/sessions", nil).OK(t)
	says(t, "logged out everywhere", jamsil.Get("/v2/me"), noSuchSession)
	hq.Post(all+"/jamsil-manager/password", map[string]string{"password": secret + "!"}).OK(t)
	jamsil.Post("/admin/login", login).Fails(t, 401, "AuthenticationError", "")

	var list struct {
		Administrators []struct {
			ID, Role       string
			Branches       []string
			Disabled, TOTP bool
		}
	}
	hq.Get(all).OK(t).Into(t, &list)
	i := slices.IndexFunc(list.Administrators, func(a struct {
		ID, Role       string
		Branches       []string
		Disabled, TOTP bool
	}) bool {
		return a.ID == "jamsil-manager"
	})
	if len(list.Administrators) != 3 || i < 0 || list.Administrators[i].Role != "viewer" || !slices.Equal(list.Administrators[i].Branches, []string{"jamsil"}) || list.Administrators[i].Disabled {
		t.Errorf("administrators %+v", list.Administrators)
	}

	nobody := reply{404, "ResourceNotFoundException", "해당 관리자를 찾을 수 없습니다."}
	says(t, "rights of no administrator", hq.Put(all+"/nobody", map[string]any{"role": "hq"}), nobody)
	says(t, "nobody", hq.Patch(all+"/nobody", map[string]bool{"disabled": true}), nobody)
	says(t, "password of no administrator", hq.Post(all+"/nobody/password", map[string]string{"password": secret}), nobody)
	own := reply{400, "IllegalArguemntError", "자신의 권한은 스스로 바꿀 수 없습니다."}
	says(t, "one's own rights", hq.Put(all+"/hq", map[string]any{"role": "viewer", "branches": []string{"jamsil"}}), own)
	says(t, "oneself", hq.Patch(all+"/hq", map[string]bool{"disabled": true}), own)
	for action, n := range map[string]string{"administrator.add": "1", "administrator.change": "2", "administrator.disable": "1", "administrator.enable": "1"} {
		if got := only(t, s, `select count(*)::text from audit where action = $1 and actor = 'admin:hq'`, action); got != n {
			t.Errorf("%s %s in the audit log, want %s", got, action, n)
		}
	}
}

func TestOwnAccount(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	const me = "/v2/admin/account"
	manager, elsewhere := s.Admin(t, "gangnam-manager", "gangnam-demo"), s.Admin(t, "gangnam-manager", "gangnam-demo")
	var account struct {
		TOTP     bool
		Sessions []struct {
			ID      string
			Current bool
		}
	}
	manager.Get(me).OK(t).Into(t, &account)
	if account.TOTP || len(account.Sessions) != 2 {
		t.Fatalf("account %+v", account)
	}
	for _, session := range account.Sessions {
		if !session.Current {
			manager.Delete(me+"/sessions/"+session.ID, nil).OK(t)
		}
	}
	says(t, "the other session", elsewhere.Get("/v2/me"), noSuchSession)

	// If the second factor is enabled, each code is accepted once.
	wrong := reply{401, "AuthenticationError", "아이디 또는 비밀번호가 올바르지 않습니다."}
	wrongCode := reply{401, "AuthenticationError", "2단계 인증 번호가 올바르지 않습니다."}
	says(t, "not begun", manager.Put(me+"/totp", map[string]string{"code": "123456"}), reply{400, "IllegalArguemntError", "2단계 인증 설정을 먼저 시작해 주세요."})
	says(t, "without the password", manager.Post(me+"/totp", map[string]string{"password": "guess"}), wrong)
	var step struct{ Secret, URL, QR string }
	manager.Post(me+"/totp", map[string]string{"password": "gangnam-demo"}).OK(t).Into(t, &step)
	if !strings.HasPrefix(step.URL, "otpauth://totp/") || step.QR == "" {
		t.Errorf("step %+v", step)
	}
	code := func() string {
		t.Helper()
		s.Clock.Advance(time.Minute)
		code, err := totp.GenerateCode(step.Secret, s.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	bad := func(code string) string { return string('0'+('9'-code[0])) + code[1:] }
	first := code()
	says(t, "a wrong code", manager.Put(me+"/totp", map[string]string{"code": bad(first)}), wrongCode)
	manager.Put(me+"/totp", map[string]string{"code": first}).OK(t)
	login := map[string]string{"id": "gangnam-manager", "password": "gangnam-demo"}
	says(t, "no code", elsewhere.Post("/admin/login", login), reply{401, "SecondFactorRequired", "2단계 인증 번호를 입력해 주세요."})
	login["code"] = first
	says(t, "a code that was used", elsewhere.Post("/admin/login", login), wrongCode)
	login["code"] = code()
	elsewhere.Post("/admin/login", login).OK(t)
	says(t, "turned off with a wrong code", manager.Delete(me+"/totp", map[string]string{"code": bad(code())}), wrongCode)
	manager.Delete(me+"/totp", map[string]string{"code": code()}).OK(t)
	delete(login, "code")
	elsewhere.Post("/admin/login", login).OK(t)
	manager.Post(me+"/totp", map[string]string{"password": "gangnam-demo"}).OK(t).Into(t, &step)
	manager.Put(me+"/totp", map[string]string{"code": code()}).OK(t)
	s.Admin(t, "hq", "hq-demo").Delete("/v2/admin/administrators/gangnam-manager/totp", nil).OK(t)
	elsewhere.Post("/admin/login", login).OK(t)

	change := func(old, next string) servicetest.Answer {
		return manager.Post(me+"/password", map[string]string{"password": old, "newPassword": next})
	}
	says(t, "not the password", change("guess", "a good long password"), wrong)
	refuses(t, "too short", change("gangnam-demo", "short"))
	change("gangnam-demo", "a good long password").OK(t)
	says(t, "the other session", elsewhere.Get("/v2/me"), noSuchSession)
	manager.Get("/v2/me").OK(t)
	says(t, "the old password", s.Client(t).Post("/admin/login", login), wrong)
	says(t, "no such session", manager.Delete(me+"/sessions/none", nil), reply{404, "ResourceNotFoundException", "해당 세션을 찾을 수 없습니다."})
}
