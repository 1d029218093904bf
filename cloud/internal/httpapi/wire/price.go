package wire

import "github.com/yeolda/yeolda/cloud/internal/booking"

// Price is a price list in JSON, in won. A tier that is null is not on offer.
type Price struct {
	Min10 *int `json:"min10"`
	Min30 *int `json:"min30"`
	Min60 *int `json:"min60"`
}

// PricingChange is a price list that applies from a time until that of the next one.
type PricingChange struct {
	From string `json:"fromDateTime"`
	Price
}

// PricingChanges returns the price lists of a window if the room has price rules.
func PricingChanges(branch booking.Branch, room booking.Room, window booking.Interval) (list []PricingChange) {
	if len(room.PriceRules) == 0 {
		return nil
	}
	for _, span := range branch.PriceSpans(room, window) {
		list = append(list, PricingChange{span.Start.In(branch.Zone).Format(LayoutMinute), Price(span.Price)})
	}
	return list
}
