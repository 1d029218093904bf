// Package channel connects rooms to the booking channels of others, so that a room
// sold there is not sold here, and the other way round.
//
// There is one port, [Channel], and three adapters, after what channels can do:
//
//	ICal     they read our calendar and we read theirs, every few minutes. Works with
//	         nearly all of them and cannot prevent a double booking inside the lag.
//	Gateway  they tell us and we tell them, at once, in signed JSON.
//	Manual   a person copies; nothing goes out and nothing comes in by itself.
//
// Reading a calendar is guarded on both ends: against the address (whoever may write
// a feed's URL must not reach our own network through it) and against the content (a
// truncated or suddenly empty calendar must not cancel anybody, see [Reconcile]).
package channel
