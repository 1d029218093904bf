// Package channel connects rooms to external booking channels, so that a room sold at
// a channel is not sold here, and vice versa.
//
// There are three kinds of channels:
//
//	ICal     both sides read the other's calendar every few minutes. Nearly every
//	         channel supports it, but it cannot prevent a double booking in between.
//	Gateway  both sides notify the other immediately, in signed JSON.
//	manual   staff copy bookings by hand; there is no automatic exchange.
//
// Importing a calendar is guarded twice: the address must be public, because the person
// who configures a feed must not reach our network through it, and the content must be
// complete, because a truncated or suddenly empty calendar must not cancel any booking
// (see [Reconcile]).
package channel
