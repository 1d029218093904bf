// Package branchfile reads branches from a YAML file and brings the database in line with it.
//
// A file is the description of branches as they shall be: it is kept in version control, reviewed, and
// applied as often as one likes. So it is read strictly (a misspelt key is an error, not a default), every
// mistake is reported at once with its line and column, what will change is shown first, and applying is
// one transaction that does exactly what was shown:
//
//	Parse ──▶ File ──┐
//	                 ├──▶ Plan: the differences ──▶ shown ──▶ Apply: in one transaction, if they still are the same
//	database ────────┘
//
// Branches that are not in the file are left alone. Reservations are never touched: a room that has any to
// come cannot be left out. What staff switch in daily life (a room on or off) belongs to the database unless
// the file says it.
//
// A demo file may hold passwords and agents' secrets in the open. What it makes is marked as demo in the
// database, and the service does not start on a public address while any of it is in force.
package branchfile
