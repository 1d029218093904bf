// Package netsim is the cable between a simulated agent and its broker, with the
// faults of a network on it.
//
// Each connection is carried packet by packet (MQTT 5, 2.1) between a pipe that
// the agent holds and a real connection to the broker:
//
//	agent ── pipe ──► read ─► lost? ─► schedule ─► deliver ── TCP ──► broker
//	                   tap              lag, order
//	      ◄── pipe ── deliver ◄─ schedule ◄─ lost? twice? ◄─ read ◄── TCP ──
//	                   tap       lag, order
//
// TCP loses, repeats and reorders nothing, but what is behind it does: brokers,
// bridges and clients that try again. So it is messages (PUBLISH) that are lost,
// doubled and overtaken here; the rest of MQTT keeps its order.
//
// What the tap sees is what the agent wrote and was given, at the moment it
// did: it sits at the agent's end of the delay.
//
// A cut is a partition. The connections of that moment are black holes from
// then on, also after the cut is lifted: what is written to them is gone, and
// neither end hears the other close. Only a keep-alive finds out. A connection
// that is begun during a cut hangs.
package netsim
