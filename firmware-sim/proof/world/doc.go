// Package world runs the whole system as real processes. [Stack] is the system as `make run` starts it. [World] is the
// service as in production, to be broken: two replicas of the cloud, PostgreSQL, Mosquitto with the deployment's
// configuration, the payment and message providers, and simulated branches, each a process that can be killed. A
// replica reaches each of its dependencies through a [faultproxy.Proxy], which can be cut or frozen.
//
//	customers ──► replica 1, TZ=UTC ──────────┬─link─ PostgreSQL
//	          ╲╱                              ├─link─ Mosquitto ───── branches (simulator)
//	          ╱╲                              └─link─ providers (sandbox)
//	callbacks ──► replica 2, TZ=America/New_York, with links of its own
//
// The machine of each replica can have a wrong clock ([Options.Clocks]). All other programs, the actors and the database share the right
// one, so everything that a run records is in the database's time.
//
// All programs end with the world, even if the program that started it is killed. A new world removes the files of
// earlier ones.
package world
