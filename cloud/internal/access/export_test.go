package access

// PressesByKey and PressesByStaff are the limits.
var (
	PressesByKey   = pressesByKey
	PressesByStaff = pressesByStaff
)
