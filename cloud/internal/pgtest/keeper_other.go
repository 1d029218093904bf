//go:build !unix

package pgtest

import "errors"

func startKeeper() (string, error) {
	return "", errors.New("a private server needs a Unix system: set YEOLDA_TEST_DATABASE_URL")
}
