// Package broker connects the cloud with the agents of the branches over MQTT v5.
//
// It embeds mochi-mqtt and contains no rules about doors or climate: it sends protocol messages ([Broker.Send]), passes
// received ones to [Doors], [Devices] and [Climate] together with the agent that sent them, and knows which agents are
// connected ([Broker.Online]). Every decision is made in those services, in the database. [Pool] uses external brokers
// instead, shared by several replicas, or makes the embedded brokers of the replicas one pool.
//
// # Peers
//
// A replica of a pool is an ordinary MQTT client, [PeerUsername], of the embedded brokers of the others. It publishes messages
// to their agents, and subscribes to presence and to the answers of commands. Claims, results, telemetry and heartbeats of an
// agent are handled by the replica to which the agent is connected.
//
// # External brokers
//
// Every replica subscribes to presence and to the answers of commands, for its memory. One replica handles each claim, result
// and telemetry message, stores each status and answers each heartbeat, by a shared subscription. A retained status is stored by
// every replica that subscribes, because it may have come while there was none.
//
// # What the broker rejects
//
//	accept ──► at most 5 s and 64 KiB for CONNECT, 4096 connections that have not finished it
//	CONNECT ─► MQTT v5, user name = client id, secret of an agent_credential row, will only on the own status topic
//	session ─► ends with its connection: no message is kept for an agent that is offline
//	topics ──► those of the credential and its branch, by protocol.Agent.MayPublish and MaySubscribe; no wildcard, no
//	           shared subscription, no $SYS, retained only on status
//
// # What of mochi-mqtt 2.7.9 is used
//
// mochi implements the protocol: connections, packets, subscriptions. Its topic tree, retained messages, queues and inline
// client are not used. A message from an agent goes from the hook to the services; a message to an agent goes to the
// sessions of its credential. Access is therefore decided by the credential of a session alone, an agent needs half the
// memory, and most of the traps below do not apply. Each was met in a measurement and has a test here.
//
//   - Outbound QoS 1 can deadlock an agent's session permanently. So everything to agents is QoS 0, the services repeat
//     messages, and the Receive Maximum of agents is ignored.
//   - A write blocks while an agent does not read. So no caller of Send waits for it.
//   - A socket that never sends CONNECT stays open, and its first five bytes may allocate 256 MiB.
//   - A client with keep-alive 0 is never detected as dead.
//   - A hook runs in the read loop of the agent, so it only enqueues messages. The loop's stack lives as long as the
//     connection, so the database is queried in other goroutines.
//   - A will is published after its client was taken over by a new connection, which then looks offline.
//   - A connection that ends while its client id reconnects can remove the new connection's entry and subscriptions.
//     This package uses neither.
//   - Close waits without limit, and hangs if a client connects while it closes clients.
package broker
