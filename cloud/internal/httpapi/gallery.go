package httpapi

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/gallery"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// photosRoute takes bodies that are larger than those of other endpoints, and so do arrivalRoute and cleanedRoute.
const photosRoute = "/v2/admin/branches/{branch}/rooms/{room}/photos"

// maxPhotoBody is the size of the largest upload in base64, with its texts.
const maxPhotoBody = gallery.MaxUpload/3*4 + wire.MaxBody

// bodyLimit returns the size of the largest body of a request in bytes.
func bodyLimit(r *http.Request) int64 {
	switch strings.TrimPrefix(chi.RouteContext(r.Context()).RoutePattern(), "/api") {
	case photosRoute, arrivalRoute, cleanedRoute:
		return maxPhotoBody
	}
	return wire.MaxBody
}

// uploadTimeout limits the time in which the body of a request with a photo must arrive. The pages reduce a photo to 2 MB, which takes a
// slow mobile network most of this time.
const uploadTimeout = 45 * time.Second

// awaitUpload gives an administrator's request with a photo more time for its body than the service gives any other.
func awaitUpload(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && bodyLimit(r) == maxPhotoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTimeout)) // fails only in tests, where w is no connection
	}
}

type wirePhoto struct {
	ID      string            `json:"id"`
	Alt     booking.Bilingual `json:"alt"`
	Sources []photoSource     `json:"sources"` // the smallest first
}

type photoSource struct {
	URL    string `json:"url"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

func toWirePhoto(p booking.Photo) wirePhoto {
	return wirePhoto{strconv.FormatInt(p.ID, 10), p.Alt, toSources(p.Files)}
}

func toSources(files []booking.PhotoFile) []photoSource {
	sources := make([]photoSource, 0, len(files))
	for _, f := range files {
		sources = append(sources, photoSource{gallery.Path(f), f.Width, f.Height})
	}
	return sources
}

func nullablePhoto(p *booking.Photo) *wirePhoto {
	if p == nil {
		return nil
	}
	return new(toWirePhoto(*p))
}

// showRooms serves GET /v2/branches/{branch}/rooms: what the rooms show to guests.
func (a *API) showRooms(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.Backoffice.Branch(r.Context(), chi.URLParam(r, "branch"))
	if err != nil {
		return err
	}
	rooms, err := a.Gallery.Rooms(r.Context(), branch.ID)
	if err != nil {
		return err
	}
	type item struct {
		RoomNo      string              `json:"roomNo"`
		Description booking.Bilingual   `json:"description"`
		Amenities   []booking.Bilingual `json:"amenities"`
		Photos      []wirePhoto         `json:"photos"`
	}
	list := make([]item, 0, len(rooms))
	for _, room := range rooms {
		one := item{strconv.Itoa(room.RoomNo), room.Description, room.Amenities, make([]wirePhoto, 0, len(room.Photos))}
		for _, photo := range room.Photos {
			one.Photos = append(one.Photos, toWirePhoto(photo))
		}
		list = append(list, one)
	}
	return wire.WriteData(w, map[string]any{"rooms": list})
}

// describeRoom serves PUT /v2/admin/branches/{branch}/rooms/{room}/profile. An absent field becomes empty.
func (a *API) describeRoom(w http.ResponseWriter, r *http.Request) error {
	branch, room, err := a.roomOf(r)
	if err != nil {
		return err
	}
	var body struct {
		Description bilingual   `json:"description"`
		Amenities   []bilingual `json:"amenities"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	p := booking.RoomProfile{Amenities: []booking.Bilingual{}}
	if p.Description, err = body.Description.text("description", gallery.MaxDescription); err != nil {
		return err
	}
	for _, one := range body.Amenities {
		amenity, err := one.text("amenities", gallery.MaxAmenity)
		if err != nil {
			return err
		}
		p.Amenities = append(p.Amenities, amenity)
	}
	if err := a.Gallery.Describe(r.Context(), branch, room, p, wire.Principal(r).Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// addPhoto serves POST /v2/admin/branches/{branch}/rooms/{room}/photos with the photo in base64.
func (a *API) addPhoto(w http.ResponseWriter, r *http.Request) error {
	branch, room, err := a.roomOf(r)
	if err != nil {
		return err
	}
	var body struct {
		Data *string   `json:"data"`
		Alt  bilingual `json:"alt"`
	}
	if err := wire.DecodeUpTo(r, bodyLimit(r), &body); err != nil {
		return err
	}
	if body.Data == nil {
		return wire.Missing("data")
	}
	alt, err := body.Alt.required("alt", gallery.MaxAlt)
	if err != nil {
		return err
	}
	photo, err := base64.StdEncoding.DecodeString(*body.Data)
	if err != nil {
		return wire.Malformed("data")
	}
	id, err := a.Gallery.AddPhoto(r.Context(), branch, room, photo, alt, wire.Principal(r).Actor())
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{"id": strconv.FormatInt(id, 10)})
}

// removePhoto serves DELETE /v2/admin/branches/{branch}/rooms/{room}/photos/{photo}.
func (a *API) removePhoto(w http.ResponseWriter, r *http.Request) error {
	branch, room, err := a.roomOf(r)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(chi.URLParam(r, "photo"), 10, 64)
	if err != nil {
		return gallery.ErrNoPhoto
	}
	if err := a.Gallery.RemovePhoto(r.Context(), branch, room, id, wire.Principal(r).Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// roomOf returns the room of the path if its branch is in the administrator's scope.
func (a *API) roomOf(r *http.Request) (booking.Branch, booking.Room, error) {
	branch, err := a.branch(r)
	if err != nil {
		return booking.Branch{}, booking.Room{}, err
	}
	no, err := wire.Number(chi.URLParam(r, "room"))
	if err != nil {
		return booking.Branch{}, booking.Room{}, wire.OutOfRange("room", 1, booking.MaxRoomNo)
	}
	room, ok := branch.Room(no)
	if !ok {
		return booking.Branch{}, booking.Room{}, reserve.ErrNoRoom
	}
	return branch, room, nil
}

// bilingual is a text in both languages as a client sends it.
type bilingual struct {
	Ko *string `json:"ko"`
	En *string `json:"en"`
}

// text returns the texts of a field, empty for those that are absent. limit is in characters.
func (b bilingual) text(field string, limit int) (text booking.Bilingual, err error) {
	if text.Ko, err = wire.OptionalText(field, b.Ko, limit); err != nil {
		return text, err
	}
	text.En, err = wire.OptionalText(field, b.En, limit)
	return text, err
}

// required returns the texts of a field that guests read in the language of their page.
func (b bilingual) required(field string, limit int) (booking.Bilingual, error) {
	text, err := b.text(field, limit)
	if err == nil && (text.Ko == "" || text.En == "") {
		err = wire.Missing(field)
	}
	return text, err
}
