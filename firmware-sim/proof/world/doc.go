// Package world runs the service as it runs in production, to be broken: two replicas of the cloud, PostgreSQL, Mosquitto
// with the deployment's configuration, the payment and message providers, and simulated branches, each a process of its
// own that can be killed. Whatever a replica depends on it reaches through a [faultproxy.Proxy], which can be cut or frozen.
//
//	customers ──► replica 1, TZ=UTC ──────────┬─link─ PostgreSQL
//	          ╲╱                              ├─link─ Mosquitto ───── branches (simulator)
//	          ╱╲                              └─link─ providers (sandbox)
//	callbacks ──► replica 2, TZ=America/New_York, with links of its own
//
// Everything ends with the world, also if the program that started it is killed; what an earlier one has left on the
// disk is removed.
package world
