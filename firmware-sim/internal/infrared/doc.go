// Package infrared is the receiving end of a remote control: it turns a train
// of mark and space durations back into the setting that the unit would show.
//
// The agent only knows opaque codes from a code set. Decoding the pulses here,
// from the protocol and not from the code set, lets a test say "this leaf ends
// with the unit at 24 °C cooling" and be wrong-footed by nothing the agent
// believes about itself.
//
//	durations ── Split at long gaps ──► frames ── LG │ Samsung ──► Message ──► State
//	                                              └─ neither: the caller matches the
//	                                                 raw frame against its code set
package infrared
