// Package light runs a fleet of light agents in one process: enough of an agent to load a service with a hundred thousand of
// them. An agent connects with its credential, subscribes, reports its status, sends heartbeats, opens doors (claim, result,
// events) and reconnects with the back-off of the real agent. It has no hardware, no keypads, no key lists and no updates.
//
//	timers ─┐
//	        ├─► loop ─► agent ─► packets ─► socket
//	epoll  ─┘
//
// One goroutine owns all agents of a fleet: an agent has neither a goroutine nor buffers, so it needs less than 1 KiB beside
// its socket in the kernel. Each agent has an address of its own in 127.0.0.0/8, as each branch has its own on the Internet:
// one address has 28,000 ports, and the broker limits connections by address. The number of agents in a process is limited
// by its open files, so a large fleet consists of several processes.
//
// TestLightAgentSpeaksLikeTheRealOne compares the packets of both agents.
package light
