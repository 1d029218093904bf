package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func TestIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want bool
	}{
		{context.DeadlineExceeded, true},
		{fmt.Errorf("read the reservation: %w", context.DeadlineExceeded), true},
		{&pgconn.ConnectError{}, true},
		{io.ErrUnexpectedEOF, true},
		{&pgconn.PgError{Code: "57P01"}, true},
		{&pgconn.PgError{Code: "53100"}, true},
		{&pgconn.PgError{Code: "25006"}, true},
		{&pgconn.PgError{Code: "23505"}, false},
		{&pgconn.PgError{Code: "42601"}, false},
		{errors.New("a bug"), false},
		{context.Canceled, false},
		{nil, false},
	} {
		if got := postgres.IsUnavailable(test.err); got != test.want {
			t.Errorf("IsUnavailable(%v): got %v, want %v", test.err, got, test.want)
		}
	}
}
