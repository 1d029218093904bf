// Package pass decides which PINs and one-time codes open a door at a keypad of the agent (docs/specification.md, Keypads). It
// needs no connection: it judges with the last list of passes, the key of the codes and a clock that the cloud has set.
//
//	beacon ─► Clock ──────────────┐
//	list ───► stored on disk ───┐ │
//	                            ▼ ▼
//	digits ─► lock-out? ─► Controller.Attempt ─► Journal (on disk) ─► door.Controller.Open ─► Journal (later) ─► cloud
//
// An attempt that may open a door is on disk, with the code it uses, before the lock is driven. A list is acknowledged only
// when no attempt that was judged by an earlier one can still open a door.
package pass
