// Package moneytest is how tests of money shop and how they audit: a [Buyer] goes through a purchase as a browser does,
// and [Audit] holds the database against the provider's own ledger, whatever was done to both before.
package moneytest
