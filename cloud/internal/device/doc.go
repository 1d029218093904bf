// Package device stores what branch agents report about themselves: presence, inventory, self-tests, sensor readings and
// the events at their doors. It marks doors that are held open and deletes reports that have expired.
package device
