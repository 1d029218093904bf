// Package doorsim simulates the door exchange: the agent's real door controller behind a network, a cloud and hardware
// that fail as a seed says, in the fake time of testing/synctest. After every run the rules for doors (D1 to D10 of the
// reliability requirements, docs/specification.md, Doors 10) are held against what the relays did.
//
//	cloud (a model) ◄──► network (delays, loses, repeats, reorders, parts, forges) ◄──► door.Controller ◄──► relays that fail
//	protocol/model.Table     real codec and signatures on every message                     the real one
//
// A second test lives through the same worlds with the whole agent in them: its MQTT client, its outbox, and a wall clock
// that jumps.
//
// What happens to a message depends on the seed and on the message, not on the order in which goroutines run, so a
// seed is the same run every time. It is all test code:
//
//	go test ./internal/doorsim                       # 5,000 seeds
//	go test ./internal/doorsim -run Seeds -seed 17 -v   # one, with everything that happened
package doorsim
