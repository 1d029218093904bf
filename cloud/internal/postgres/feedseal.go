package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// FeedPurpose is the purpose with which the addresses of partners' calendars are sealed.
const FeedPurpose = "calendar-feed"

// Feed is the address of the calendar that a listing imports. Both fields are empty if there is none.
type Feed struct {
	FeedSealed []byte
	FeedText   string // written by a program of the last release; FeedSealed takes precedence
}

// HasAddress reports whether there is an address.
func (f Feed) HasAddress() bool { return f.FeedSealed != nil || f.FeedText != "" }

// URL returns the address, or an empty text if there is none. open decrypts a sealed value, as seal.Keyring.Open does.
func (f Feed) URL(open func(purpose string, sealed []byte) ([]byte, error)) (string, error) {
	if f.FeedSealed == nil {
		return f.FeedText, nil
	}
	text, err := open(FeedPurpose, f.FeedSealed)
	if err != nil {
		return "", fmt.Errorf("address of a calendar: %w", err)
	}
	return string(text), nil
}

// UnsealedFeed is the address of a calendar that a program of the last release has written.
type UnsealedFeed struct {
	Listing int
	Text    string
}

// UnsealedFeeds returns the addresses that are stored in plain text only.
func UnsealedFeeds(ctx context.Context, q Querier, limit int) ([]UnsealedFeed, error) {
	rows, err := q.Query(ctx, `
		select id, feed_url from channel_listing where feed_url <> '' and feed_sealed is null order by id limit $1`, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[UnsealedFeed])
}

// SealFeed stores the sealed address of a calendar.
func SealFeed(ctx context.Context, q Querier, feed UnsealedFeed, sealed []byte) error {
	_, err := q.Exec(ctx, `
		update channel_listing set feed_sealed = $3 where id = $1 and feed_url = $2 and feed_sealed is null`, feed.Listing, feed.Text, sealed)
	return err
}

// ForgetFeedTexts empties the plain text of sealed addresses that no program of the last release needs any more.
func ForgetFeedTexts(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `
		update channel_listing set feed_url = '' where feed_url <> '' and feed_sealed is not null and feed_text_until <= $1`, now)
	return err
}
