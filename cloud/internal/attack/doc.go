// Package attack holds the attacks that SECURITY.md names. Its tests run them against the whole service over HTTP and MQTT
// (`make attack`), and require every row of SECURITY.md that names attacks to name ones that exist, and the reverse.
package attack
