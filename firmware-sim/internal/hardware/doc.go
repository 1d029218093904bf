// Package hardware simulates the hardware of a branch: locks, door leaves, exit buttons, keypads, air conditioners and
// thermo-hygrometers. The agent sees it as its Board; the panel sees and does what a visitor of the branch could.
//
//	agent ── Relay.Out ─► relay ─► lock ─► sense line ─► Sense.Read ── agent
//	                        │        ▲
//	                        │        └── keypad
//	                        └─► actuation {at, device, requestId, energizedMs}
//	agent ── Transmitter ─► pulses ─► ir.Decode ─► unit ─► air ─► chips ── agent
//
// The board of one PowerOn works until PowerOff, which releases every relay. An agent that still runs after that drives
// nothing.
package hardware
