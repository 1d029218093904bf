// Package rpi is the board of a Raspberry Pi, and of any Linux machine with the same kernel interfaces: GPIO character
// devices (uAPI v2), LIRC, I²C and hwmon. It names chips, lines and drivers as the kernel does, and numbers nothing.
//
// Everything is asked of the kernel when it is first needed and again after it failed: what is not there yet, or never
// will be, costs itself only. The relays of the doors go first, because asking for one is what makes it idle.
package rpi
