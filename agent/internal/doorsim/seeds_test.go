//go:build !race

package doorsim

const normalSeeds = 5000
