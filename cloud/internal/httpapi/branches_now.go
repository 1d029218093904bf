package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// wireBranch is a branch as the customers' pages show it.
type wireBranch struct {
	Branch   string `json:"branch"`
	NameKo   string `json:"nameKo"`
	NameEn   string `json:"nameEn"`
	Address  string `json:"address"`
	Phone    string `json:"phone"`
	TimeZone string `json:"timeZone"`
	Horizon  int    `json:"bookingHorizonDays"`

	RefundText refundText `json:"refundPolicyText"`
}

// refundText is the refund policy in one sentence.
type refundText struct {
	Korean  string `json:"ko"`
	English string `json:"en"`
}

func toRefundText(p booking.RefundPolicy) refundText { return refundText{p.Korean(), p.English()} }

func toWireBranch(b booking.Branch) wireBranch {
	return wireBranch{b.Code, b.NameKo, b.NameEn, b.Address, b.Phone, b.Zone.String(), int(b.Horizon / (24 * time.Hour)),
		toRefundText(b.RefundPolicy)}
}

const (
	defaultBranches = 50
	maxBranches     = 200
	maxQuery        = 100
)

// branchesNow serves GET /v2/branches/now.
func (a *API) branchesNow(w http.ResponseWriter, r *http.Request) error {
	limit, err := wire.OptionalInt(r, "limit", defaultBranches, 1, maxBranches)
	if err != nil {
		return err
	}
	after, err := wire.OptionalInt(r, "cursor", 0, 1, 1<<31-1)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	near, err := readNear(query.Get("near"), query.Has("near"))
	if err != nil {
		return err
	}
	search := strings.TrimSpace(query.Get("q"))
	if utf8.RuneCountInString(search) > maxQuery {
		return wire.Malformed("q")
	}
	page, more, err := a.Reserve.BranchesNow(r.Context(), booking.BranchSearch{Text: search, Near: near, After: after, Limit: limit})
	if err != nil {
		return err
	}
	ids := make([]booking.BranchID, 0, len(page))
	for _, b := range page {
		ids = append(ids, b.ID)
	}
	covers, err := a.Gallery.Covers(r.Context(), ids)
	if err != nil {
		return err
	}
	type item struct {
		wireBranch
		Status    string  `json:"status"`
		Reason    *string `json:"reason"`
		FreeRooms int     `json:"freeRooms"`
		NextFree  *string `json:"nextFreeDateTime"`
		Online    bool    `json:"online"`

		Location *booking.Location `json:"location"`
		Distance *int              `json:"distanceMeters"`
		Photo    *wirePhoto        `json:"photo"`
	}
	var body struct {
		Branches []item  `json:"branches"`
		Next     *string `json:"next"`
	}
	body.Branches = make([]item, 0, len(page))
	for _, b := range page {
		one := item{wireBranch: toWireBranch(b.Branch), Status: string(b.Today.Status), Reason: wire.Nullable(b.Today.Reason), FreeRooms: b.FreeRooms,
			Online: b.Online, Location: b.Location, Distance: b.Distance}
		if cover, ok := covers[b.ID]; ok {
			one.Photo = new(toWirePhoto(cover))
		}
		if !b.NextFree.IsZero() {
			next := wire.Minute(b.NextFree, b.Zone)
			one.NextFree = &next
		}
		body.Branches = append(body.Branches, one)
	}
	if more && len(page) > 0 {
		next := strconv.Itoa(int(page[len(page)-1].ID))
		if near != nil {
			next = strconv.Itoa(after + len(page))
		}
		body.Next = &next
	}
	return wire.WriteData(w, body)
}

// readNear reads the query near=latitude,longitude.
func readNear(text string, given bool) (*booking.Location, error) {
	if !given {
		return nil, nil
	}
	lat, lon, _ := strings.Cut(text, ",")
	latitude, latErr := strconv.ParseFloat(lat, 64)
	longitude, lonErr := strconv.ParseFloat(lon, 64)
	near := booking.Location{Latitude: latitude, Longitude: longitude}
	if latErr != nil || lonErr != nil || near.Validate() != nil {
		return nil, wire.Malformed("near")
	}
	return &near, nil
}
