// Package chip simulates thermo-hygrometers at the level of their registers, on periph's I2C bus, so that the agent's
// drivers run unchanged: commands, conversion times, raw values and checksums follow the data sheets.
//
// Each chip has its own bus, as behind a multiplexer.
package chip
