// Package passsim simulates a branch with keypads for hours of simulated time: guests with PINs and one-time codes, staff who
// cancel, move and rotate, thieves who replay and forge lists and guess, two machines of which one is active, power cuts at any
// instruction of the disk, restarts with and without a hardware clock, and clocks that are set by an hour. The controller, the clock,
// the journal and the door controller are the agent's own. Each seed is one schedule; every opening of a lock is held against
// what the agent could know.
package passsim
