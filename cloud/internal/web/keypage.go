package web

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

//go:embed src/template/key.html
var keyHTML string

// keyPage is what every key page has in common. Style and script stand in the page, so that it is whole after one
// answer over one bar of signal; the policy allows those two texts and nothing else.
type keyPage struct {
	template *template.Template
	style    template.CSS
	script   template.JS
	policy   string
}

func newKeyPage() (*keyPage, error) {
	parsed, err := template.New("key").Parse(keyHTML)
	if err != nil {
		return nil, err
	}
	style, err := inline(sources(), "styles/key.css")
	if err != nil {
		return nil, err
	}
	script, err := inline(sources(), "key.ts")
	if err != nil {
		return nil, err
	}
	//nolint:gosec // both texts are ours, from the embedded sources
	return &keyPage{parsed, template.CSS(style), template.JS(script), inlinePolicy(style, script)}, nil
}

// keyView is one page. Key is nil when there is none.
type keyView struct {
	Lang, Title string
	T           keyTexts
	Style       template.CSS
	Script      template.JS
	Phone       string // of customer service
	Key         *Key

	Action                     string // where the form goes
	State                      string // before, open, after
	Place, Date, Times, Window string
	OpensAt, RoomDoor          string
	Result                     string // opened, pin, silent, outside; empty: none
	PIN                        []string
	SpokenPIN                  string
}

// showKey shows a key. With a request in the query it waits for that request's result first: this is where the
// form post of a browser without scripts ends up, and a reload shows the result again instead of pressing again.
func (s *site) showKey(w http.ResponseWriter, r *http.Request) {
	key, ok := s.findKey(w, r)
	if !ok {
		return
	}
	view := s.keyView(w, r, key)
	if request := r.URL.Query().Get("request"); request != "" {
		s.awaitResult(r, request, view)
	}
	s.writeKey(w, r, http.StatusOK, view)
}

func (s *site) awaitResult(r *http.Request, request string, view *keyView) {
	result, err := s.Keys.Await(r, request, r.PathValue("key"))
	switch {
	case err != nil:
		view.Result = "silent"
	case result.Opened:
		view.Result = "opened"
	case result.PIN == "":
		view.Result = "silent"
	default:
		view.Result = "pin"
		view.PIN = strings.Split(result.PIN, "")
		view.SpokenPIN = strings.Join(view.PIN, " ")
	}
}

// pressDoor is the form post of a browser without scripts.
func (s *site) pressDoor(w http.ResponseWriter, r *http.Request) {
	key, ok := s.findKey(w, r)
	if !ok {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	door := r.PostFormValue("door")
	if door != "front" && door != "room" {
		http.Error(w, "door is front or room", http.StatusBadRequest)
		return
	}
	if key.state(s.Now()) != "open" {
		view := s.keyView(w, r, key)
		view.Result = "outside"
		s.writeKey(w, r, http.StatusGone, view)
		return
	}
	request, err := s.Keys.Unlock(r.Context(), key.Branch, door, r.PathValue("key"))
	if err != nil {
		s.Log.ErrorContext(r.Context(), "unlock from the key page failed", "branch", key.Branch, "door", door, "error", err)
		view := s.keyView(w, r, key)
		view.Result = "silent"
		s.writeKey(w, r, http.StatusServiceUnavailable, view)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	//nolint:gosec // the path is this page's own: it begins with /k/
	http.Redirect(w, r, r.URL.Path+"?request="+url.QueryEscape(request), http.StatusSeeOther)
}

// findKey answers the request itself when there is no such key.
func (s *site) findKey(w http.ResponseWriter, r *http.Request) (Key, bool) {
	key, err := s.Keys.Find(r.Context(), r.PathValue("key"))
	if errors.Is(err, ErrUnknownKey) {
		lang, texts := s.keyLanguage(w, r)
		s.writeKey(w, r, http.StatusNotFound, &keyView{Lang: lang, Title: texts.Unknown, T: texts})
		return Key{}, false
	}
	if err != nil {
		s.fail(w, r, "key", err)
		return Key{}, false
	}
	return key, true
}

func (s *site) keyView(w http.ResponseWriter, r *http.Request, key Key) *keyView {
	lang, texts := s.keyLanguage(w, r)
	clock := func(t time.Time) string { return t.In(key.Zone).Format("15:04") }
	name := key.NameKo
	if lang == "en" && key.NameEn != "" {
		name = key.NameEn
	}
	room := strconv.Itoa(key.Room)
	place := name + " " + texts.room(room)
	return &keyView{
		Lang: lang, Title: place + " | " + texts.Brand, T: texts, Key: &key,
		Action: "/k/" + url.PathEscape(r.PathValue("key")), State: key.state(s.Now()),
		Place: place, Date: texts.date(key.Start.In(key.Zone)), Times: clock(key.Start) + "–" + clock(key.End),
		OpensAt:  texts.fill(texts.OpensAt, clock(key.From)),
		RoomDoor: texts.fill(texts.RoomDoor, room),
		Window:   texts.fill(texts.Window, clock(key.From), clock(key.To)),
	}
}

func (k Key) state(now time.Time) string {
	switch {
	case now.Before(k.From):
		return "before"
	case now.Before(k.To):
		return "open"
	}
	return "after"
}

func (s *site) writeKey(w http.ResponseWriter, r *http.Request, status int, view *keyView) {
	view.Style, view.Script = s.keyPage.style, s.keyPage.script
	view.Phone = s.Company.Phone
	var page bytes.Buffer
	if err := s.keyPage.template.Execute(&page, view); err != nil {
		s.fail(w, r, "key", err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", s.keyPage.policy)
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer") // the address is the key
	header.Set("X-Robots-Tag", "noindex")
	if view.Key != nil { // the service worker forgets the page after that
		header.Set("Key-Until", strconv.FormatInt(view.Key.End.Unix(), 10))
	}
	writeZipped(w, r, status, page.Bytes(), zip(page.Bytes()))
}
