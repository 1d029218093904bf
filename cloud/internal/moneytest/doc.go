// Package moneytest provides the client and the audit for tests of payments: a [Buyer] makes a purchase as a browser does,
// and [Audit] compares the database with the provider's ledger.
package moneytest
