// Package climate controls the air conditioners of the branches and reads their sensors.
//
// The options of an air conditioner are those the agent announced last, so they are also shown while the branch is
// offline. A command or a read is one request to the agent. It is repeated with the same id until the agent answers, and
// the agent executes it once.
//
//	request ───► sent, repeated every 0.4 s ──► answer
//	   │                                  └──► no answer within 7 s ─┐
//	   └── branch offline ───────────────────────────────────────────┴──► ErrDeviceUnavailable
//
// Every replica receives the answers; the replica that sent the request knows its id.
package climate
