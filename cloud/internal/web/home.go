package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// branchNow is a branch with its availability.
type branchNow struct {
	branchFacts
	Status           string
	Reason           *string
	FreeRooms        int
	NextFreeDateTime *string
	FreeTomorrow     bool // NextFreeDateTime is not today
	Online           bool
	Photo            *photo
	Location         *struct{ Latitude, Longitude float64 }
}

// manyBranches is the number of branches above which the home page offers a search, as in home.ts.
const manyBranches = 8

// homeScreen is the content of the home page.
type homeScreen struct {
	Branches []branchNow
	Search   bool
	Asked    string // the text of the search
	More     string // address of the next page; "" for none
}

func (s *site) home(v *screenView, shell *shellData) error {
	asked, cursor := strings.TrimSpace(v.Query.Get("q")), v.Query.Get("cursor")
	var found struct {
		Branches []branchNow
		Next     *string
	}
	if err := v.read("/v2/branches/now"+listQuery("q", asked, "cursor", cursor), &found); err != nil {
		return err
	}
	for i, b := range found.Branches {
		today, err := v.s.today(b.TimeZone)
		if err != nil {
			return err
		}
		found.Branches[i].FreeTomorrow = b.NextFreeDateTime != nil && !strings.HasPrefix(*b.NextFreeDateTime, today)
	}
	content := homeScreen{Branches: found.Branches, Asked: asked}
	content.Search = found.Next != nil || len(found.Branches) > manyBranches || asked != ""
	if found.Next != nil {
		content.More = "/" + listQuery("q", asked, "cursor", *found.Next)
	}
	if last, err := v.r.Cookie(lastBranchCookie); err == nil {
		slices.SortStableFunc(content.Branches, func(a, b branchNow) int { return place(a, last) - place(b, last) })
	}
	v.Content = content
	shell.Title, shell.Description = shell.say("homePage"), shell.say("homeAbout")
	v.Address = s.PublicURL + "/" + listQuery("cursor", cursor)
	for _, b := range found.Branches {
		if b.Photo != nil {
			v.Image = s.PublicURL + b.Photo.largest().URL
			break
		}
	}
	v.Linked = s.linkedHome(shell.speech, found.Branches)
	return nil
}

// today returns the date in a time zone, YYYYMMDD.
func (s *site) today(timeZone string) (string, error) {
	zone, err := time.LoadLocation(timeZone)
	return wall(s.Now(), zone).Format("20060102"), err
}

// lastBranchCookie holds the branch that the guest has seen last, which comes first on the home page.
const lastBranchCookie = "branch"

func place(b branchNow, last *http.Cookie) int {
	if b.Branch == last.Value {
		return 0
	}
	return 1
}

// listQuery returns a query of the names and values in their order, without those that are empty.
func listQuery(pairs ...string) string {
	query := ""
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query += "&" + pairs[i] + "=" + url.QueryEscape(pairs[i+1])
		}
	}
	if query == "" {
		return ""
	}
	return "?" + query[1:]
}

// Clock returns the time of day of YYYYMMDDHHmm.
func (speech) Clock(minute string) (string, error) {
	at, err := time.Parse(minuteLayout, minute)
	return at.Format("15:04"), err
}
