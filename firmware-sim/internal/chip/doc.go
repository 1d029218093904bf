// Package chip simulates thermo-hygrometers at the level of their registers, on
// periph's I2C bus, so that the agent's own drivers run: commands, conversion
// times, raw values and checksums are those of the data sheets.
//
// Each chip has a bus to itself, as behind a multiplexer.
package chip
