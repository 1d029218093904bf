// Package doorsim simulates the door exchange: the real door controllers of one or two Pis, a cloud and hardware with the
// faults of a seed, in the simulated time of testing/synctest. After every run the rules for doors (D1 to D10 in
// firmware-sim/proof/check) are compared with what the relays did.
//
//	cloud (a model) ◄──► network (delays, loses, repeats, reorders, parts, forges) ◄──► door.Controller ◄──► relays that fail
//	protocol/model.Table     real codec and signatures on every message                     the real ones
//
// A branch may have a second Pi, with the same doors or on the bench without any, which may become the active one at any
// time, and a thief with a stolen standby credential that knows every nonce and lies about it. Faults planted in the
// protocol must be found.
//
// Another test runs the same seeds with the whole agent: its MQTT client, its outbox, and a wall clock that jumps.
//
// The fate of a message depends on the seed and on the message, not on the order in which goroutines run, so a seed repeats
// exactly:
//
//	go test ./internal/doorsim                       # 5,000 seeds
//	go test ./internal/doorsim -run Seeds -seed 17 -v   # one, with its trace
package doorsim
