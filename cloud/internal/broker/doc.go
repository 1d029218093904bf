// Package broker connects the cloud with the agents of the branches over MQTT v5.
//
// It embeds mochi-mqtt and knows nothing about doors or climate: it carries protocol messages out ([Broker.Send]), hands
// those that come in to [Doors] and [Devices] together with the branch their topic names, and knows which branches are
// there ([Broker.Online]). Every decision is taken behind it, in the database. A broker outside this process, shared by
// several replicas, is reached by [Remote] instead.
//
// # What the broker refuses
//
//	accept ──► at most 5 s and 64 KiB for CONNECT, 4096 connections that have not finished it
//	CONNECT ─► MQTT v5, user name = client id, secret of an agent_credential row, will only on the own status topic
//	session ─► ends with its connection: nothing ever waits here for an agent that is away
//	topics ──► those of the credential's branch, by the functions that name them (protocol.AgentMayPublish, …Subscribe);
//	           no wildcard, no shared subscription, no $SYS, retained only on status
//
// # What of mochi-mqtt 2.7.9 is used, and what not
//
// mochi speaks the protocol: connections, packets, subscriptions. Its tree of topics, its retained messages, its
// queues and its client inside the process stand idle. A message from an agent goes from the hook to [Doors] and
// [Devices]; one to an agent goes to the connections of its branch. Who may hear what is thereby decided by the branch
// of a session and nothing else, an agent costs half the memory, and most of the traps below lie elsewhere. Each was
// met in a measurement, and each has a test here.
//
//   - Outbound QoS 1 can deadlock an agent's session for ever. So everything to agents is QoS 0 and the verbs repeat
//     themselves; the Receive Maximum of agents is ignored.
//   - Writing waits for an agent that does not read. So it is never done where anybody else waits.
//   - A socket that never says CONNECT stays for ever, and its first five bytes may allocate 256 MiB.
//   - A client whose keep-alive is 0 is never found dead.
//   - A hook runs in the read loop of the agent: it only hands over to a queue. Its stack is that of the connection for
//     life, so the database is asked elsewhere.
//   - A will is published after its client was taken over by a new connection, which then looks offline.
//   - A connection that ends while its client id comes back can take the newcomer's entry and subscriptions with it.
//     Nothing here needs either.
//   - Close waits without limit, and hangs when a client connects while it closes clients.
package broker
