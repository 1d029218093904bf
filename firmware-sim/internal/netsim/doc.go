// Package netsim simulates the network between a simulated agent and its broker, with its faults.
//
// Each connection is forwarded packet by packet (MQTT 5, 2.1) between a pipe to the agent and a real connection to the
// broker:
//
//	agent ── pipe ──► read ─► lost? ─► schedule ─► deliver ── TCP ──► broker
//	                   tap              lag, order
//	      ◄── pipe ── deliver ◄─ schedule ◄─ lost? twice? ◄─ read ◄── TCP ──
//	                   tap       lag, order
//
// TCP does not lose, repeat or reorder data, but brokers, bridges and clients that retry do. Therefore messages
// (PUBLISH) are lost, duplicated and reordered here; all other packets keep their order.
//
// The tap is at the agent's end: it sees messages when the agent sends or receives them.
//
// A cut is a partition. The connections of that moment drop everything from then on, also after the cut, and neither
// end sees the other close; only a keep-alive detects it. A connection attempt during a cut blocks.
package netsim
