// Package broker connects the cloud with the agents of the branches over MQTT v5.
//
// It embeds mochi-mqtt and knows nothing about doors or climate: it carries protocol messages out ([Broker.Send]), hands
// those that come in to [Doors] and [Devices] together with the branch their topic names, and knows which branches are
// there ([Broker.Online]). Every decision is taken behind it, in the database. A broker outside this process, shared by
// several replicas, therefore needs another Send and Online and nothing else.
//
// # What the broker refuses
//
//	accept ──► at most 5 s and 64 KiB for CONNECT, 1024 connections that have not finished it
//	CONNECT ─► MQTT v5, user name = client id, secret of an agent_credential row, will only on the own status topic
//	session ─► ends with its connection: nothing ever waits here for an agent that is away
//	topics ──► those of the credential's branch, by the functions that name them (protocol.AgentMayPublish, …Subscribe);
//	           no wildcard, no shared subscription, no $SYS, retained only on status
//
// # Traps of mochi-mqtt 2.7.9
//
// Each was met in a measurement, and each has a test here.
//
//   - Outbound QoS 1 can deadlock an agent's session for ever, and one agent that stops reading blocks every publisher.
//     So everything to agents is QoS 0 and the verbs repeat themselves; the Receive Maximum of agents is ignored.
//   - The inline client speaks MQTT 3.1.1 unless told otherwise, and then message expiry is ignored.
//   - A socket that never says CONNECT stays for ever, and its first five bytes may allocate 256 MiB.
//   - A client whose keep-alive is 0 is never found dead.
//   - An inline handler runs in the read loop of the agent: it only hands over to a queue.
//   - A will is published after its client was taken over by a new connection, which then looks offline.
//   - A connection that ends while its client id comes back can take the newcomer's subscriptions with it: a connected
//     but deaf agent. The broker looks for those and makes them connect again.
//   - Close waits without limit, and hangs when a client connects while it closes clients.
package broker
