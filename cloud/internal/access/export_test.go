package access

// PressesByKey and PressesByStaff export the rate limits.
var (
	PressesByKey   = pressesByKey
	PressesByStaff = pressesByStaff
)
