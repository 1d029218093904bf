package booking

// Bilingual is a text in both languages of the pages.
type Bilingual struct {
	Ko string `json:"ko"`
	En string `json:"en"`
}

// RoomProfile is what a room shows to guests.
type RoomProfile struct {
	RoomNo      int
	Description Bilingual
	Amenities   []Bilingual
	Photos      []Photo // the first one stands for the room
}

// Photo is a photo of a room in some widths.
type Photo struct {
	ID    int64
	Alt   Bilingual
	Files []PhotoFile // the smallest first
}

// PhotoFile is a photo in one width, without its data.
type PhotoFile struct {
	Name          string // hash of the data in hex
	Width, Height int
}

// ArrivalStep is one step of the way from the street to a room. Files is its photo, the smallest first; empty: none.
type ArrivalStep struct {
	ID    int64
	Text  Bilingual
	Files []PhotoFile
}
