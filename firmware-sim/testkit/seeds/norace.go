//go:build !race

package seeds

// Normal is how many seeds a test runs.
const Normal = 5000
