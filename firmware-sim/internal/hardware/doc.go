// Package hardware is the hardware of a simulated branch: locks, door leaves, exit
// buttons, keypads, air conditioners and thermo-hygrometers, seen from one side
// as the agent's Board and from the other as what a person in the branch would
// see and do.
//
//	agent ── Relay.Out ─► relay ─► lock ─► sense line ─► Sense.Read ── agent
//	                        │        ▲
//	                        │        └── keypad
//	                        └─► actuation {at, device, requestId, energizedMs}
//	agent ── Transmitter ─► pulses ─► ir.Decode ─► unit ─► air ─► chips ── agent
//
// The board of one PowerOn works until PowerOff, which lets every relay fall;
// an agent that does not know yet that it is dead moves nothing any more.
package hardware
