package wire

// Price is a price list in JSON, in won. A tier that is null is not on offer.
type Price struct {
	Min10 *int `json:"min10"`
	Min30 *int `json:"min30"`
	Min60 *int `json:"min60"`
}
