// Package failpoint lets a test kill the process at a named line, as a power cut would: the proof that money survives
// a crash at any instruction is made by crashing at each of them (see package torture).
//
// Only a program built with the tag failpoint has them; elsewhere Hit and Shorten do nothing and are compiled away.
package failpoint
