package httpapi_test

import (
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// TestNewBranch adds a branch without rooms and one like gangnam. Guests find neither before a room is on sale, and no room is
// on sale before its door is proven.
func TestNewBranch(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	hq, guest := s.Admin(t, "hq", "hq-demo"), s.Client(t)
	body := map[string]any{"branch": "sinchon", "nameKo": "신촌점", "nameEn": "Sinchon", "address": "가상로 1", "phone": "02-123-4567"}
	with := func(changes map[string]any) map[string]any {
		changed := maps.Clone(body)
		maps.Copy(changed, changes)
		return changed
	}
	for name, changes := range map[string]map[string]any{
		"a code in capitals":        {"branch": "Sinchon"},
		"a code that is too long":   {"branch": "a1234567890123456789012345678901234567890"},
		"no Korean name":            {"nameKo": ""},
		"no English name":           {"nameEn": nil},
		"a phone number of letters": {"phone": "call me"},
	} {
		if got := hq.Post("/v2/admin/branches", with(changes)); got.HTTP != 400 {
			t.Errorf("%s: %d %s, want 400", name, got.HTTP, got.Raw)
		}
	}
	const malformed = "지점 코드(branch)는 영문 소문자, 숫자, 하이픈으로 최대 40자이며 영문 소문자나 숫자로 시작해야 합니다."
	for _, code := range []string{"Sinchon", "신촌", "-sinchon", "sin chon"} {
		hq.Post("/v2/admin/branches", with(map[string]any{"branch": code})).Fails(t, 400, "IllegalArguemntError", malformed)
	}
	hq.Post("/v2/admin/branches", with(map[string]any{"branch": strings.Repeat("a", 41)})).Fails(t, 400, "IllegalArguemntError", "지점(branch) 값은 최대 40자까지 입력할 수 있습니다.")
	// The longest code fits everywhere: in the description, and in the topics and grants of its doors.
	longest := strings.Repeat("a", 40)
	schema := contract.Document().Components.Schemas["BranchCode"].Value
	if schema.MaxLength == nil || *schema.MaxLength != uint64(len(longest)) || !regexp.MustCompile(schema.Pattern).MatchString(longest) || !protocol.ValidBranch(longest) {
		t.Errorf("BranchCode of openapi.yaml has the pattern %s and the limit %v, want 40", schema.Pattern, schema.MaxLength)
	}
	hq.Post("/v2/admin/branches", with(map[string]any{"branch": longest})).OK(t)
	hq.Get("/v2/admin/branches/" + longest + "/settings").OK(t)
	hq.Post("/v2/admin/branches", with(map[string]any{"copyFrom": "a\x00"})).Fails(t, 400, "IllegalArguemntError", "")
	hq.Post("/v2/admin/branches", with(map[string]any{"copyFrom": "nowhere"})).Fails(t, 404, "ResourceNotFoundException", "해당 지점을 찾을 수 없습니다.")
	hq.Post("/v2/admin/branches", body).OK(t)
	hq.Post("/v2/admin/branches", body).Fails(t, 409, "ResourceAlreadyExistException", "이미 있는 지점 코드입니다.")
	hq.Post("/v2/admin/branches", with(map[string]any{"branch": "sinchon-2", "copyFrom": "gangnam"})).OK(t)

	type settings struct {
		NameKo, Address, Phone string
		Week                   any
		RefundPolicy           any
		Rooms                  []struct {
			RoomNo, Machine, Lock string
			Enabled, HasPin       bool
			Pricing               any
		}
	}
	read := func(branch string) (got settings) {
		t.Helper()
		hq.Get("/v2/admin/branches/"+branch+"/settings").OK(t).Into(t, &got)
		return got
	}
	if empty := read("sinchon"); empty.NameKo != "신촌점" || empty.Address != "가상로 1" || len(empty.Rooms) != 0 {
		t.Errorf("the new branch: %+v", empty)
	}
	model, copied := read("gangnam"), read("sinchon-2")
	if len(copied.Rooms) != len(model.Rooms) || !reflect.DeepEqual(copied.Week, model.Week) || !reflect.DeepEqual(copied.RefundPolicy, model.RefundPolicy) {
		t.Errorf("the copy: %+v, want the hours, rules and rooms of %+v", copied, model)
	}
	for i, room := range copied.Rooms {
		if room.Enabled || room.HasPin || room.Lock != "unproven" || room.Machine != model.Rooms[i].Machine || !reflect.DeepEqual(room.Pricing, model.Rooms[i].Pricing) {
			t.Errorf("room of the copy: %+v, want %+v without PIN, disabled", room, model.Rooms[i])
		}
	}
	var now branchesNow
	guest.Get("/v2/branches/now?q=sinchon").OK(t).Into(t, &now)
	if len(now.Branches) != 0 {
		t.Errorf("guests find %+v", now.Branches)
	}
	if got := hq.Patch("/admin/machines/sinchon-2/1", map[string]any{"enabled": true}); got.HTTP != 409 {
		t.Errorf("a room without a door is put on sale: %d %s", got.HTTP, got.Raw)
	}
	hq.Put("/v2/admin/branches/sinchon/rooms/1", map[string]any{"machine": "베드", "min60": 10000, "noLock": true}).OK(t)
	hq.Patch("/admin/machines/sinchon/1", map[string]any{"enabled": true}).OK(t)
	guest.Get("/v2/branches/now?q=sinchon").OK(t).Into(t, &now)
	if len(now.Branches) != 1 || now.Branches[0].Branch != "sinchon" || now.Branches[0].FreeRooms != 1 {
		t.Errorf("guests find %+v, want sinchon with one free room", now.Branches)
	}
}
