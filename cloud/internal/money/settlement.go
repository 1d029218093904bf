package money

// Settlement is what the provider deducts from one movement of money. Amounts are in won; those of a cancellation are
// negative.
type Settlement struct {
	TransactionKey string
	OrderID        string
	Method         string
	Amount         int
	Fee            int // without VAT
	VAT            int
	PayOut         int
	SoldOn         string // YYYY-MM-DD, Korean time
	PaidOutOn      string // YYYY-MM-DD; empty: not fixed yet
}

// SettlementRow is the settlement of a branch, legal entity, day and method.
type SettlementRow struct {
	Branch    string
	Entity    string // code of the legal entity that was paid; empty: that of the settings
	Date      string // YYYY-MM-DD, local to the branch
	Method    string
	Paid      int    // won, by our books
	Refunded  int    // Outside included
	Outside   int    // returned outside the provider
	Fee       int    // of the provider, without VAT
	VAT       int    // of the fee
	PayoutDay string // YYYY-MM-DD; empty: not fixed yet
}

// Net is what is left for the shop.
func (r SettlementRow) Net() int { return r.Paid - r.Refunded - r.Fee - r.VAT }
