package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// First screens are made by the server: home, dates and rooms. Their markup is that of the browser code, which renders them
// again from the data in the document without a request. They work without scripts up to the choice of a time.

// ErrNoData is returned by Options.Data if the service has nothing at an address.
var ErrNoData = errors.New("web: no data")

// lineBreaks are those between two tags of a template. The browser code makes no white space either.
var lineBreaks = regexp.MustCompile(`>\s*\n\s*<`)

// screenNames are the first screens; each has a template of its name.
var screenNames = []string{"home", "date", "rooms"}

// parseScreens returns the document of each first screen.
func parseScreens() (map[string]*template.Template, error) {
	documents := map[string]*template.Template{}
	for _, name := range screenNames {
		document, err := parseShell()
		if err != nil {
			return nil, err
		}
		for _, file := range []string{"frame", name} {
			source, err := embedded.ReadFile("src/template/" + file + ".html")
			if err != nil {
				return nil, err
			}
			if document, err = document.Parse(lineBreaks.ReplaceAllString(string(source), "><")); err != nil {
				return nil, fmt.Errorf("template %s: %w", file, err)
			}
		}
		documents[name] = document
	}
	return documents, nil
}

// A screenView is what the template of a first screen shows.
type screenView struct {
	Name    string
	Back    string // address of the screen above; empty: none
	Seller  *companyFacts
	Content any

	Address  string // at PublicURL, without a language
	Query    url.Values
	Image    string
	Linked   any // JSON-LD
	Carried  map[string]json.RawMessage
	RenderAt int64 // ms since 1970

	r    *http.Request
	s    *site
	lang string
}

// Canonical is the address of the page in a language. Without a language, guests see their own.
func (v *screenView) Canonical(lang string) string {
	if lang == "ko" {
		return v.Address
	}
	if strings.Contains(v.Address, "?") {
		return v.Address + "&lang=" + lang
	}
	return v.Address + "?lang=" + lang
}

// companyFacts are the facts about an operator or a seller; each is nil if it is not set.
type companyFacts struct {
	Name, Representative, Address, Phone, Email      *string
	BusinessNumber, MailOrderNumber, HostingProvider *string
}

// OtherLanguage is the address of the page in another language.
func (v *screenView) OtherLanguage(lang string) string {
	query := url.Values{}
	for name, values := range v.Query {
		query[name] = values
	}
	query.Set("lang", lang)
	return "?" + query.Encode()
}

// read fetches data of the interface that the browser code needs too; the document carries it.
func (v *screenView) read(address string, into any) error {
	data, err := v.peek(address, into)
	if err == nil {
		v.Carried[address] = data
	}
	return err
}

// peek fetches data that only the document shows.
func (v *screenView) peek(address string, into any) (json.RawMessage, error) {
	data, err := v.s.Data(v.r, v.lang, address)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("data of %s: %w", address, err)
	}
	return data, nil
}

// serveScreen serves a first screen. build fills its view and the title and description of its document. If the data cannot be
// had, the browser code gets the shell, asks for the data itself, and explains the failure.
func (s *site) serveScreen(name string, build func(*screenView, *shellData) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shell := s.shellOf(w, r)
		view := &screenView{
			Name: name, Address: s.PublicURL + r.URL.EscapedPath(), Query: r.URL.Query(), Image: s.PublicURL + "/icon-512.png",
			Carried: map[string]json.RawMessage{}, RenderAt: s.Now().UnixMilli(), r: r, s: s, lang: shell.Lang,
		}
		view.Query.Del("lang")
		if err := s.fill(view, &shell, build); errors.Is(err, ErrNoData) {
			s.serveMissing(w, r)
			return
		} else if err != nil {
			s.Log.WarnContext(r.Context(), "first screen has no data", "screen", name, "error", err)
			s.writeDocument(w, r, s.shell, shell, s.policy.page, http.StatusOK)
			return
		}
		shell.Screen = view
		s.writeDocument(w, r, s.screens[name], shell, s.policy.page, http.StatusOK)
	}
}

func (s *site) fill(view *screenView, shell *shellData, build func(*screenView, *shellData) error) error {
	var site struct{ Company companyFacts }
	if err := view.read("/v2/site", &site); err != nil {
		return err
	}
	if err := build(view, shell); err != nil {
		return err
	}
	operator := site.Company
	if view.Seller != nil && view.Seller.HostingProvider == nil {
		view.Seller.HostingProvider = operator.HostingProvider
	}
	if view.Seller == nil {
		view.Seller = &operator
	}
	shell.Title += " | " + shell.say("brand")
	return nil
}

// branchFacts are the facts about a branch.
type branchFacts struct {
	Branch, NameKo, NameEn, Address, Phone, TimeZone string
	BookingHorizonDays                               int
	Seller                                           *companyFacts
}

// Path is the address of the branch's screen.
func (b branchFacts) Path() string { return "/b/" + b.Branch }

func (b branchFacts) names() bilingual { return bilingual{b.NameKo, b.NameEn} }

// Name returns the name of a branch.
func (s speech) Name(b interface{ names() bilingual }) string { return s.Read(b.names()) }

// openBranch is a branch with its wall-clock time.
type openBranch struct {
	branchFacts
	now, today, last time.Time
}

// branch reads the branch of the address. It returns ErrNoData if there is none.
func (v *screenView) branch() (b openBranch, err error) {
	code := v.r.PathValue("branch")
	var found struct{ Branches []branchFacts }
	if err := v.read("/v2/branches?branch="+url.QueryEscape(code), &found); err != nil {
		return b, err
	}
	if len(found.Branches) != 1 {
		return b, ErrNoData
	}
	b.branchFacts = found.Branches[0]
	zone, err := time.LoadLocation(b.TimeZone)
	if err != nil {
		return b, fmt.Errorf("branch %s: %w", b.Branch, err)
	}
	b.now = wall(v.s.Now(), zone)
	b.today = b.now.Truncate(wholeDay)
	b.last = b.today.AddDate(0, 0, max(0, b.BookingHorizonDays-1)) // later on the next day, the horizon is passed
	v.Seller = b.Seller
	return b, nil
}

// calendarDay is a day of a branch's calendar.
type calendarDay struct {
	Date, Status string
	Reason       *string
}

// calendar reads the days of months by date.
func (v *screenView) calendar(branch string, months ...string) (map[string]calendarDay, error) {
	days := map[string]calendarDay{}
	for _, month := range slices.Compact(slices.Sorted(slices.Values(months))) {
		var found struct{ Dates []calendarDay }
		if err := v.read("/v2/branches/"+branch+"/calendar?yearMonth="+month, &found); err != nil {
			return nil, err
		}
		for _, day := range found.Dates {
			days[day.Date] = day
		}
	}
	return days, nil
}

// Shut returns why a day is closed; "" if it is not.
func (s speech) Shut(day calendarDay) string {
	switch {
	case day.Status == "" || day.Status == "available":
		return ""
	case day.Reason != nil:
		return *day.Reason
	case day.Status == "holiday":
		return s.say("dayHoliday")
	}
	return s.say("dayClosed")
}

// value returns the text or "".
func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
