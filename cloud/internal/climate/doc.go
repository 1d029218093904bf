// Package climate controls the air conditioners of the branches and reads their sensors, and it keeps what agents tell
// about themselves: their inventory, their readings, the events at their doors.
//
// What can be controlled is what the agent announced last, so the tree is there while the branch is not. A command or a
// read is one question to the agent, repeated with the same id until it answers: the agent carries it out once.
//
//	question ──► sent, repeated every 0.4 s ──► answer
//	   │                                  └──► nothing within 7 s ─┐
//	   └── branch known offline ───────────────────────────────────┴──► ErrDeviceUnavailable
//
// Answers reach every replica; the one that asked knows the id.
package climate
