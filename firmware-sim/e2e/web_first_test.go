package e2e

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// taken waits until the browser code has taken the screen over from the server.
func (p *page) taken() {
	p.t.Helper()
	p.wait("the browser code", `document.querySelector("#app:not([data-first]) main")`)
}

// difference compares the screen of the browser code with what the server makes of the same address: "" if they are equal.
const difference = `(async () => {
	const tree = e => {
		e.normalize();
		const attributes = [...e.attributes].filter(a => a.name !== "data-first" && !(a.name === "value" && e.matches("input"))).map(a => a.name + "=" + a.value.trim()).sort();
		return ["<" + e.localName + " " + attributes.join(" ")].concat([...e.childNodes].flatMap(n => n.nodeType === Node.ELEMENT_NODE ? tree(n) : n.data.trim() ? [n.data] : []));
	};
	const page = await (await fetch(location.href)).text();
	const made = tree(new DOMParser().parseFromString(page, "text/html").getElementById("app"));
	const shown = tree(document.getElementById("app").cloneNode(true));
	const at = Math.max(made.length, shown.length) && [...Array(Math.max(made.length, shown.length)).keys()].find(i => made[i] !== shown[i]);
	return at === undefined ? "" : "the server has " + made[at] + ", the browser " + shown[at];
})()`

// firstScreensAreTheSame checks that nothing changes when the browser code takes a first screen over.
func firstScreensAreTheSame(t *testing.T, s *world.Stack, p *page) {
	furnish(t, s)
	for _, lang := range []string{"ko", "en"} {
		for _, path := range []string{"/", "/?q=gang", "/b/gangnam", "/b/hongdae/" + dayOf(t, s, "hongdae", "closed"), "/b/gangnam/" + tomorrow()} {
			found := "no attempt"
			for range 3 { // a slot may begin between the two
				p.open(withLanguage(path, lang))
				p.taken()
				if requests := value[int](p, `performance.getEntriesByType("resource").filter(r => r.name.includes("/api/")).length`); requests > 0 {
					t.Errorf("%s in %s makes %d requests, although the document has its data", path, lang, requests)
				}
				if found = value[string](p, difference); found == "" {
					break
				}
			}
			if found != "" {
				t.Errorf("%s in %s: %s", path, lang, found)
			}
		}
	}
}

func withLanguage(path, lang string) string {
	if bytes.ContainsRune([]byte(path), '?') {
		return path + "&lang=" + lang
	}
	return path + "?lang=" + lang
}

// furnish gives a room a photo, a description and an amenity.
func furnish(t testing.TB, s *world.Stack) {
	t.Helper()
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 960, 640)), nil); err != nil {
		t.Fatal(err)
	}
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	room := "/v2/admin/branches/gangnam/rooms/1/"
	hq.must("POST", room+"photos", map[string]any{"data": base64.StdEncoding.EncodeToString(photo.Bytes()), "alt": map[string]string{"ko": "창가의 소파", "en": "A sofa by the window"}}, nil)
	hq.must("PUT", room+"profile", map[string]any{
		"description": map[string]string{"ko": "조용한 안쪽 룸이에요.", "en": ""},
		"amenities":   []map[string]string{{"ko": "빔 프로젝터", "en": "Projector"}, {"ko": "전기 포트", "en": "Kettle"}},
	}, nil)
}

// choiceWithoutScripts walks from the home page to the summary by links alone.
func choiceWithoutScripts(p *page) {
	p.withoutScripts()
	p.open("/")
	p.press("열다 강남점")
	p.see("언제 갈까요?")
	p.press("다음 달", "이전 달", "내일")
	p.see("어느 룸에서 쉴까요?")
	day := value[string](p, `location.pathname`)
	p.press("2번 룸", "20시", "20:10")
	p.see("얼마나 쉴까요?")
	p.press("1시간")
	p.at(day + "/2/2010-2110")
	p.see("예약을 마치려면")
}
