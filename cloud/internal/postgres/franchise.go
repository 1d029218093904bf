package postgres

import "context"

// FranchiseInquiry is an inquiry by a prospective franchisee.
type FranchiseInquiry struct {
	Name    string
	Mobile  string
	Email   string
	Region  string
	Message string
}

// InsertFranchiseInquiry stores an inquiry.
func InsertFranchiseInquiry(ctx context.Context, q Querier, i FranchiseInquiry) error {
	_, err := q.Exec(ctx, `insert into franchise_inquiry (name, mobile, email, region, message) values ($1, $2, $3, $4, $5)`,
		i.Name, i.Mobile, i.Email, i.Region, i.Message)
	return err
}
