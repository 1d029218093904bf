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

// keyPage holds the texts that all key pages share. Style and script are inline, so one response is enough to open a door on a
// poor network. The policy allows these two texts, with the brand's colour, and our own assets.
type keyPage struct {
	template *template.Template
	style    string
	script   string
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
	return &keyPage{parsed, style, script}, nil
}

// keyView is the data of one page. Key is nil if the key is unknown.
type keyView struct {
	Lang, Title string
	T           keyTexts
	Style       template.CSS
	Script      template.JS
	Phone       string // of customer service
	Logo        string // address; empty: the shipped mark
	Key         *Key
	Why         string // why a key opens nothing; empty: it could not be found out

	Action                     string // the target of the form
	State                      string // before, open, leaving, after
	Next                       string // "room" after the front door has opened
	Place, Date, Times, Window string
	OpensAt, RoomDoor          string
	RoomName                   string
	PulseSeconds               string
	Parts                      string // address of the script for what no door needs
	Panels                     []panel
	PIN                        digits // of the door that did not open
	StayPIN                    digits // of the reservation
	Compensation               string // for a door that did not open
}

// digits are what a keypad takes.
type digits string

// Spoken returns the digits apart, so that a screen reader reads each.
func (d digits) Spoken() string { return strings.Join(d.Each(), " ") }

// Each returns one string per digit.
func (d digits) Each() []string { return strings.Split(string(d), "") }

// A panel shows one outcome of a press. All panels are part of the page, so that it can show any outcome offline.
type panel struct {
	Name, Class           string
	Title, Headline, Text string // Title has {door}, Headline the name of a door
	Shown, Reload         bool
}

// keyParts is the entry point of the key page's second script.
const keyParts = "key-parts.ts"

// panelOrder lists the outcomes of a press: waiting, opened, and those that went wrong.
var panelOrder = []string{
	"waiting", "opened", "pin", "code", "over", "failed", "unknown", "unreachable", "offline", "server", "busy", "moved", "stale", "outside",
}

// showKey serves the page of a key. If the query names an unlock request, showKey waits for its result first: without
// scripts, the browser is redirected here after the form post, and a reload shows the result instead of unlocking again.
func (s *site) showKey(w http.ResponseWriter, r *http.Request) {
	key, ok := s.findKey(w, r)
	if !ok {
		return
	}
	view := s.keyView(w, r, key)
	switch query := r.URL.Query(); {
	case query.Get("request") != "":
		s.awaitResult(r, query.Get("request"), query.Get("door"), view)
	case query.Get("fresh") == "moved":
		view.show("moved", "")
	}
	s.writeKey(w, r, http.StatusOK, view)
}

func (s *site) awaitResult(r *http.Request, request, door string, view *keyView) {
	name := view.T.FrontName
	if door == "room" {
		name = view.RoomName
	}
	result, err := s.Keys.Await(r, request, r.PathValue("key"))
	switch {
	case err != nil:
		view.show("unknown", name)
	case result.Opened:
		view.show("opened", name)
		if door == "front" {
			view.Next = "room"
		}
	case result.PIN == "":
		view.show("failed", name)
	default:
		view.PIN = digits(result.PIN)
		if result.Code {
			view.show("code", name)
		} else {
			view.show("pin", name)
		}
	}
}

// show makes the panel of an outcome visible.
func (v *keyView) show(outcome, door string) {
	for i := range v.Panels {
		if p := &v.Panels[i]; p.Name == outcome {
			p.Shown, p.Headline = true, headline(p.Title, door)
		}
	}
}

// pressDoor handles the form post of a browser without scripts.
func (s *site) pressDoor(w http.ResponseWriter, r *http.Request) {
	key, ok := s.findKey(w, r)
	if !ok {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	door := r.PostFormValue("door")
	if door != "front" && door != "room" {
		http.Error(w, "door must be front or room", http.StatusBadRequest)
		return
	}
	view := s.keyView(w, r, key)
	if room := r.PostFormValue("room"); room != "" && room != strconv.Itoa(key.Room) { // moved since the page was loaded
		view.show("moved", "")
		s.writeKey(w, r, http.StatusConflict, view)
		return
	}
	if view.State != "open" {
		view.show("outside", "")
		s.writeKey(w, r, http.StatusGone, view)
		return
	}
	request, err := s.Keys.Unlock(r.Context(), key.Branch, door, r.PathValue("key"))
	if err != nil {
		s.Log.ErrorContext(r.Context(), "unlock from the key page failed", "branch", key.Branch, "door", door, "error", err)
		view.show("server", "")
		s.writeKey(w, r, http.StatusServiceUnavailable, view)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	result := url.Values{"request": {request}, "door": {door}}
	//nolint:gosec // the path is this page's own: it begins with /k/
	http.Redirect(w, r, r.URL.Path+"?"+result.Encode(), http.StatusSeeOther)
}

// findKey looks up the key in the request path. If the lookup fails, findKey sends the error page and returns false.
func (s *site) findKey(w http.ResponseWriter, r *http.Request) (Key, bool) {
	key, err := s.Keys.Find(r.Context(), r.PathValue("key"))
	if errors.Is(err, ErrUnknownKey) {
		lang, texts := s.keyLanguage(w, r)
		why := ""
		if s.Keys.Why != nil {
			why = s.Keys.Why(r.Context(), r.PathValue("key"), lang)
		}
		s.writeKey(w, r, http.StatusNotFound, &keyView{Lang: lang, Title: texts.Unknown, T: texts, Why: why})
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
	view := &keyView{
		Lang: lang, Title: place + " | " + texts.Brand, T: texts, Key: &key,
		Action: "/k/" + url.PathEscape(r.PathValue("key")), State: key.state(s.Now()),
		Compensation: texts.compensation(key),
		Place:        place, Date: texts.date(key.Start.In(key.Zone)), Times: clock(key.Start) + "–" + texts.until(key.Start.In(key.Zone), key.End.In(key.Zone)),
		OpensAt:  texts.fill(texts.OpensAt, clock(key.From)),
		RoomDoor: texts.fill(texts.RoomDoor, room), RoomName: texts.fill(texts.RoomName, room),
		Window:       texts.window(key),
		PulseSeconds: strconv.Itoa(int(key.Pulse.Seconds())),
	}
	if key.StayPIN != nil {
		view.StayPIN = digits(key.StayPIN.Digits)
	}
	view.Panels = view.panels()
	return view
}

func (v *keyView) panels() []panel {
	var list []panel
	for _, name := range panelOrder {
		text := v.T.panels[name]
		p := panel{Name: name, Class: "bad help", Title: text.title, Text: text.text}
		switch name {
		case "waiting":
			p.Class = "wait"
		case "opened":
			p.Class, p.Text = "good", v.T.fill(p.Text, v.PulseSeconds)
		case "outside":
			p.Class, p.Text = "bad", v.Window
		case "offline":
			p.Class = "bad"
		case "stale":
			p.Class, p.Reload = "bad", true
		case "moved", "over":
			p.Class = "note"
		}
		list = append(list, p)
	}
	return list
}

// state returns the phase of the reservation. In the phase "leaving" doors no longer open, but the stay has not ended.
func (k Key) state(now time.Time) string {
	switch {
	case now.Before(k.From):
		return "before"
	case now.Before(k.To):
		return "open"
	case now.Before(k.End):
		return "leaving"
	}
	return "after"
}

func (s *site) writeKey(w http.ResponseWriter, r *http.Request, status int, view *keyView) {
	now := s.Company(r.Context())
	style := s.keyPage.style + now.Brand.KeyStyle()
	view.Style, view.Script = template.CSS(style), template.JS(s.keyPage.script) //nolint:gosec // embedded sources and a checked colour
	view.Logo = viewOf(now).Logo
	view.Parts = "/assets/" + s.pages.entry[keyParts]
	view.Phone = now.Company.Phone
	var page bytes.Buffer
	if err := s.keyPage.template.Execute(&page, view); err != nil {
		s.fail(w, r, "key", err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", s.policy.inline(style, s.keyPage.script))
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer") // the address contains the key
	header.Set("X-Robots-Tag", "noindex")
	if view.Key != nil { // the service worker deletes its cached copy at this time
		header.Set("Key-Until", strconv.FormatInt(view.Key.End.Unix(), 10))
	}
	writeZipped(w, r, status, page.Bytes(), zip(page.Bytes()))
}
