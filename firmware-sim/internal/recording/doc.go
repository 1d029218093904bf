// Package recording records what happens to a simulated branch, and lets it happen
// again.
//
//	hands, weather, faults ─► hardware ─► changes ─► Recorder ─► Recording (JSON)
//	            ▲                                             │
//	            └───────────── Step by Step ◄── Player ◄──────┘
//
// On a recording is what the world does to a branch: the air at its sensors, leaves,
// exit buttons and keypads, what remote controls say, and what fails. What the
// agent does is not: a replay drives no relay, and asks the cloud for nothing. A
// PIN is not either, only whether it was the right one.
package recording
