//go:build race

package doorsim

// normalSeeds is less under the race detector, which makes every step ten times as long.
const normalSeeds = 300
