package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

type entityList struct {
	Entities []struct {
		Entity    string            `json:"entity"`
		Company   map[string]string `json:"company"`
		ClientKey string            `json:"clientKey"`
		Branches  []string          `json:"branches"`
		RetiredAt *string           `json:"retiredAt"`
	} `json:"entities"`
}

// TestEntities checks that the headquarters add legal entities and assign them to branches, that no answer contains a secret
// key, and that a guest's payment page gets the client key and the facts of the entity that sells.
func TestEntities(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	const path, branch = "/v2/admin/entities/seoul", "/v2/admin/branches/gangnam/entity"
	entity := func(change map[string]any) map[string]any {
		body := map[string]any{
			"company":   map[string]string{"name": " 주식회사 서울 ", "businessNumber": "123-45-67890"},
			"clientKey": "test_gck_yeolda_demo_2", "widgetSecretKey": "test_gsk_yeolda_demo_2", "apiSecretKey": "test_sk_yeolda_demo_2",
		}
		for name, value := range change {
			body[name] = value
		}
		return body
	}
	for name, bad := range map[string]struct {
		path   string
		change map[string]any
		status int
	}{
		"a code in capitals":       {"/v2/admin/entities/Seoul", nil, 400},
		"no secret key":            {path, map[string]any{"widgetSecretKey": nil}, 400},
		"the keys exchanged":       {path, map[string]any{"widgetSecretKey": "test_sk_yeolda_demo_2", "apiSecretKey": "test_gsk_yeolda_demo_2"}, 400},
		"a key with a colon":       {path, map[string]any{"apiSecretKey": "test_sk_a:b"}, 400},
		"an unknown key":           {path, map[string]any{"apiSecretKey": "test_sk_stranger"}, 400},
		"the key of the settings":  {path, map[string]any{"apiSecretKey": "test_sk_yeolda_demo"}, 409},
		"the settings' client key": {path, map[string]any{"clientKey": "test_gck_yeolda_demo"}, 409},
		"not an e-mail":            {path, map[string]any{"company": map[string]string{"email": "x"}}, 400},
	} {
		answer := hq.Put(bad.path, entity(bad.change))
		if answer.HTTP != bad.status || strings.Contains(string(answer.Raw), "_gsk_") || strings.Contains(string(answer.Raw), "_sk_") {
			t.Errorf("%s: %d %s", name, answer.HTTP, answer.Raw)
		}
	}
	hq.Put(branch, map[string]any{"entity": "seoul"}).Fails(t, http.StatusNotFound, "ResourceNotFoundException", "")
	hq.Put("/v2/admin/branches/nowhere/entity", map[string]any{"entity": nil}).Fails(t, http.StatusNotFound, "ResourceNotFoundException", "")

	var list entityList
	answer := hq.Put(path, entity(nil)).OK(t)
	answer.Into(t, &list)
	if strings.Contains(string(answer.Raw), "_gsk_") || strings.Contains(string(answer.Raw), "_sk_") {
		t.Errorf("an answer with a secret key: %s", answer.Raw)
	}
	if e := list.Entities; len(e) != 1 || e[0].Entity != "seoul" || e[0].Company["name"] != "주식회사 서울" || len(e[0].Branches) != 0 {
		t.Fatalf("entities %+v", list)
	}
	hq.Put("/v2/admin/entities/busan", entity(nil)).Fails(t, http.StatusConflict, "ResourceAlreadyExistException", "")
	hq.Put(path, entity(map[string]any{"widgetSecretKey": nil, "apiSecretKey": nil, "clientKey": "test_gck_yeolda_demo_3"})).OK(t) // keeps the secrets
	hq.Put(path, entity(map[string]any{"widgetSecretKey": nil, "apiSecretKey": nil})).OK(t)

	guest := s.Client(t)
	hold := func(room int) (held struct {
		ClientKey string
		Seller    *struct{ Name, BusinessNumber *string }
	}) {
		guest.Post("/reservation", holdBody(room, slot(s, 3*time.Hour), time.Hour)).OK(t)
		guest.Get("/v2/hold").OK(t).Into(t, &held)
		return held
	}
	sellers := func() (named []string) {
		var found struct {
			Branches []struct {
				Branch string
				Seller *struct{ Name, BusinessNumber *string }
			}
		}
		guest.Get("/v2/branches").OK(t).Into(t, &found)
		for _, b := range found.Branches {
			if b.Seller != nil {
				named = append(named, b.Branch+" "+*b.Seller.Name+" "+*b.Seller.BusinessNumber)
			}
		}
		return named
	}
	if named := sellers(); len(named) != 0 {
		t.Errorf("branches that name a seller: %v", named)
	}
	if held := hold(1); held.ClientKey != "test_gck_yeolda_demo" || held.Seller != nil {
		t.Errorf("the client key of the settings: %+v", held)
	}
	hq.Put(branch, map[string]any{"entity": "seoul"}).OK(t).Into(t, &list)
	if !slices.Equal(list.Entities[0].Branches, []string{"gangnam"}) {
		t.Errorf("branches %v", list.Entities[0].Branches)
	}
	if named := sellers(); !slices.Equal(named, []string{"gangnam 주식회사 서울 123-45-67890"}) {
		t.Errorf("branches that name a seller: %v", named)
	}
	if held := hold(2); held.ClientKey != "test_gck_yeolda_demo_2" || held.Seller == nil || *held.Seller.Name != "주식회사 서울" {
		t.Errorf("the entity's client key and facts: %+v", held)
	}
	off, on := map[string]any{"enabled": false}, map[string]any{"enabled": true}
	hq.Patch(path, off).Fails(t, http.StatusConflict, "SettingConflictException", "이 사업자로 판매하는 지점이 있습니다. 먼저 지점의 판매 사업자를 바꿔 주세요.")
	hq.Put(branch, map[string]any{"entity": nil}).OK(t).Into(t, &list)
	if held := hold(3); len(list.Entities[0].Branches) != 0 || held.ClientKey != "test_gck_yeolda_demo" {
		t.Errorf("the settings' again: %+v, %+v", list, held)
	}
	hq.Patch(path, off).OK(t).Into(t, &list)
	if list.Entities[0].RetiredAt == nil {
		t.Error("the entity is not retired")
	}
	hq.Put(branch, map[string]any{"entity": "seoul"}).Fails(t, http.StatusConflict, "SettingConflictException", "사용을 마친 사업자입니다.")
	list = entityList{}
	hq.Patch(path, on).OK(t).Into(t, &list)
	if list.Entities[0].RetiredAt != nil {
		t.Error("the entity is still retired")
	}
	var audited int
	if err := s.DB.Pool.QueryRow(t.Context(), `select count(*) from audit where action like 'entity.%' and detail::text not like $1`, "%\\_sk\\_%").Scan(&audited); err != nil || audited != 7 {
		t.Errorf("%d entries of the audit log, %v", audited, err)
	}
}

// TestEntityKeysOfAnotherContract: the keys of an entity with a payment are replaced by those of another contract, which does not have that
// payment. They are rejected: no refund and no look-up of its payments would work any more. Those of the contract are taken.
func TestEntityKeysOfAnotherContract(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq := s.Admin(t, "hq", "hq-demo")
	put := func(merchant string) servicetest.Answer {
		return hq.Put("/v2/admin/entities/seoul", map[string]any{
			"company": map[string]string{"name": "주식회사 서울", "businessNumber": "123-45-67890"}, "clientKey": "test_gck_yeolda_demo_" + merchant,
			"widgetSecretKey": "test_gsk_yeolda_demo_" + merchant, "apiSecretKey": "test_sk_yeolda_demo_" + merchant,
		})
	}
	put("2").OK(t)
	put("3").OK(t) // before the first payment
	hq.Put("/v2/admin/branches/gangnam/entity", map[string]any{"entity": "seoul"}).OK(t)
	s.Sandbox.UseClientKey("test_gck_yeolda_demo_3")
	start := s.Clock.Now().Truncate(10 * time.Minute).Add(3 * time.Hour)
	wish := moneytest.Wish{Room: 1, Start: start, Method: sandbox.MethodCard, Mobile: "01012345678"}
	if _, err := moneytest.NewBuyer(s.URL, s.Sandbox).Buy(t.Context(), wish); err != nil {
		t.Fatal(err)
	}
	put("4").Fails(t, http.StatusConflict, "SettingConflictException", "이 사업자의 결제를 찾을 수 없는 키입니다. 다른 계약의 키는 새 사업자로 추가해 주세요.")
	put("3").OK(t)
}
