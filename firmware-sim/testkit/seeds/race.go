//go:build race

package seeds

// Normal is how many seeds a test runs. The race detector makes every step about ten times as slow.
const Normal = 300
