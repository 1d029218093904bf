package web

import (
	"net/url"
	"strconv"
)

// Structured data of schema.org for search engines and assistants (JSON-LD).

type linked map[string]any

// linkedHome describes the operator and the branches.
func (s *site) linkedHome(speech speech, branches []branchNow) linked {
	items := make([]linked, 0, len(branches))
	for i, b := range branches {
		item := s.linkedBranch(speech, b.branchFacts)
		if b.Location != nil {
			item["geo"] = linked{"@type": "GeoCoordinates", "latitude": b.Location.Latitude, "longitude": b.Location.Longitude}
		}
		if b.Photo != nil {
			item["image"] = s.PublicURL + b.Photo.largest().URL
		}
		items = append(items, linked{"@type": "ListItem", "position": i + 1, "item": item})
	}
	return linked{"@context": "https://schema.org", "@graph": []linked{
		{"@type": "Organization", "name": speech.say("brand"), "url": s.PublicURL + "/"},
		{"@type": "ItemList", "itemListElement": items},
	}}
}

func (s *site) linkedBranch(speech speech, b branchFacts) linked {
	place := linked{"@type": "LocalBusiness", "@id": s.PublicURL + b.Path(), "name": speech.Name(b), "url": s.PublicURL + b.Path()}
	if b.Address != "" {
		place["address"] = b.Address
	}
	if b.Phone != "" {
		place["telephone"] = b.Phone
	}
	return place
}

// describe adds the structured data of a branch and, on the screen of a day, of its rooms.
func (s *site) describe(v *screenView, speech speech, b openBranch, day *offers) error {
	place := s.linkedBranch(speech, b.branchFacts)
	graph := []linked{place}
	if day == nil {
		silent := func(address string, into any) error { _, err := v.peek(address, into); return err }
		if _, err := v.profiles(b, silent); err != nil {
			return err
		}
	} else {
		for _, r := range day.slots.rooms {
			graph = append(graph, s.linkedRoom(v, speech, b, day, r))
		}
	}
	place["image"] = v.Image
	v.Linked = linked{"@context": "https://schema.org", "@graph": graph}
	return nil
}

// linkedRoom describes a room with the offer of its shortest stay.
func (s *site) linkedRoom(v *screenView, speech speech, b openBranch, day *offers, r room) linked {
	showcase := day.profiles[r.RoomNo]
	product := linked{"@type": "Product", "name": speech.Name(b.branchFacts) + " " + speech.say("room", "no", r.RoomNo)}
	if showcase.Says() {
		product["description"] = speech.Read(showcase.Description)
	}
	var images []string
	for _, p := range showcase.Photos {
		images = append(images, s.PublicURL+p.largest().URL)
	}
	if len(images) > 0 {
		product["image"] = images
	}
	if smallest, ok := r.smallest(); ok && r.Enabled {
		availability := "https://schema.org/SoldOut"
		if _, _, free := day.slots.firstFree(r); free {
			availability = "https://schema.org/InStock"
		}
		product["offers"] = linked{
			"@type": "Offer", "price": strconv.Itoa(smallest.won), "priceCurrency": "KRW", "availability": availability,
			"url":    v.Address + "?room=" + url.QueryEscape(r.RoomNo),
			"seller": linked{"@id": s.PublicURL + b.Path()},
		}
	}
	return product
}
