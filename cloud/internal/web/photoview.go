package web

import (
	"fmt"
	"strings"
)

// photo is a photo of the interface.
type photo struct {
	Alt     bilingual
	Sources []photoSource // the smallest first
}

type photoSource struct {
	URL           string
	Width, Height int
}

func (p photo) largest() photoSource { return p.Sources[len(p.Sources)-1] }

// photoView is a photo as a page shows it, like photo in showcase.ts.
type photoView struct {
	photoSource
	Class, Alt, Sizes, Srcset string
	Lazy                      bool
}

// cardColumn is the width of a column of cards.
const cardColumn = "(min-width: 34rem) 31.5rem, 100vw"

func (s speech) photo(p photo, class, sizes string, lazy bool) photoView {
	set := make([]string, 0, len(p.Sources))
	for _, source := range p.Sources {
		set = append(set, fmt.Sprintf("%s %dw", source.URL, source.Width))
	}
	return photoView{p.Sources[0], class, s.Read(p.Alt), sizes, strings.Join(set, ", "), lazy}
}

// Thumbnail returns a photo in its smallest size; only the first ones of a list are not lazy.
func (s speech) Thumbnail(p photo, index int) photoView {
	p.Sources = p.Sources[:1]
	return s.photo(p, "photo small", "7rem", index >= eagerThumbnails)
}

// eagerThumbnails and eagerCovers are the numbers of photos that the first view of a phone shows, as in showcase.ts.
const (
	eagerThumbnails = 4
	eagerCovers     = 1
)

// Cover returns the photo that stands for a room.
func (s speech) Cover(p photo, index int) photoView {
	return s.photo(p, "photo", cardColumn, index >= eagerCovers)
}

// Large returns a photo of the photos of a room.
func (s speech) Large(p photo) photoView { return s.photo(p, "photo", cardColumn, true) }

// showcase is what a room shows to guests.
type showcase struct {
	RoomNo      string
	Description bilingual
	Amenities   []bilingual
	Photos      []photo
}

// Says reports whether there is a description.
func (p showcase) Says() bool { return p.Description.Ko != "" || p.Description.En != "" }
