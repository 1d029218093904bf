// Package rpi provides the board of a Raspberry Pi, and of any Linux machine with the same kernel interfaces: GPIO character
// devices (uAPI v2), LIRC, I²C and hwmon. It identifies chips, lines and drivers by the kernel's names.
//
// Every device is opened on first use, and again after it failed, so a missing device affects only itself. The relays of the
// doors are requested first, because the request de-energises them.
package rpi
