package main

import (
	"errors"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/yeolda/yeolda/cloud/client"
)

// A service that does not answer has violated nothing: verify asks it again, and reports in the end that it does not know.
func TestVerifyReportsNoViolationOfAServiceThatIsNotAvailable(t *testing.T) {
	for name, problem := range map[string]error{
		"restarted replica": &url.Error{Op: "Get", URL: "http://service", Err: errors.New("connection reset by peer")},
		"proxy without one": &client.Error{HTTP: 502},
		"limit of a proxy":  &client.Error{HTTP: 429},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &verifier{ctx: t.Context()}
				asked := 0
				done, err := v.until(func() (bool, error) {
					if asked++; asked < 3 {
						return false, problem
					}
					return true, nil
				})
				if !done || err != nil || asked != 3 {
					t.Errorf("available again: got %v, %v after %d questions, want true after 3", done, err, asked)
				}
				if done, err := v.until(func() (bool, error) { return false, problem }); done || !errors.Is(err, problem) {
					t.Errorf("never available: got %v, %v, want %v", done, err, problem)
				}
				if done, err := v.until(func() (bool, error) { return false, nil }); done || err != nil {
					t.Errorf("an outcome that does not arrive: got %v, %v", done, err)
				}
			})
		})
	}
}
