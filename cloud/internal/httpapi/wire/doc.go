// Package wire reads requests and writes answers in the forms of the HTTP interface: the envelope, fields with their
// limits, times local to a branch, and stored ends ten minutes before the real end.
package wire
