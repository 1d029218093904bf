// Package branchfile reads branches from a YAML file and updates the database to match it.
//
// A file is the intended state of branches: it is kept in version control, reviewed, and applied repeatedly. Reading is
// strict (a misspelled key is an error, not a default), all mistakes are reported together with line and column, the
// changes are shown first, and applying them is one transaction that does exactly what was shown:
//
//	Parse ──▶ File ──┐
//	                 ├──▶ Plan: the differences ──▶ shown ──▶ Apply: in one transaction, if they are still the same
//	database ────────┘
//
// Branches that are not in the file are not changed, and neither are reservations: a room with reservations to come can
// neither be omitted nor disabled. Settings that staff change daily (a room on or off) keep the database's value unless the file sets them.
//
// A demo file may contain passwords and agents' secrets in plain text. Accounts from it are marked as demo in the
// database, and the service does not start on a public address while one of them is enabled.
package branchfile
