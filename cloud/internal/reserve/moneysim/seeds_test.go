//go:build !race

package moneysim

const normalSeeds = 5000
