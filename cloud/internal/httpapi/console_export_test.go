package httpapi_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestExportLinkLeadsToACalendar requests the link that the console shows.
func TestExportLinkLeadsToACalendar(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	var listing int
	err := s.DB.Pool.QueryRow(t.Context(), `
		insert into channel_listing (channel, partner, external_id, room_id)
		select 'ical', 'spacecloud', 'gangnam-room-3', m.id from room m join branch b on b.id = m.branch_id
		where b.code = 'gangnam' and m.no = $1 returning id`, 3).Scan(&listing)
	if err != nil {
		t.Fatal(err)
	}
	hq := s.Admin(t, "hq", "hq-demo")
	var link struct {
		URL string `json:"url"`
	}
	hq.Post("/v2/admin/branches/gangnam/channels/"+strconv.Itoa(listing)+"/export", nil).OK(t).Into(t, &link)
	_, path, _ := strings.Cut(link.URL, "/ical/")
	response, err := http.Get(s.Root + "/ical/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "BEGIN:VCALENDAR") {
		t.Fatalf("%s: %d %s", link.URL, response.StatusCode, body)
	}
}
