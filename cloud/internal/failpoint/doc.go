// Package failpoint lets a test end the process at a named line, as a power cut would. Package torture crashes the
// service at each of them to show that no payment is lost.
//
// Failpoints exist only in a program built with the tag failpoint; otherwise Hit and Shorten have no effect and are
// compiled away.
package failpoint
