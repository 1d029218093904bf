// Package money holds the types of the payment domain: a payment at the provider, a refund, a callback, a discrepancy
// between the provider's books and ours, and a ledger entry. It has no I/O and no clock, so the payment rule and its
// simulation can use it without a database.
package money
