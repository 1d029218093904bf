package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// postTimeout bounds the answer of the receiver.
const postTimeout = 10 * time.Second

// Post sends JSON to an address from the settings of the service. Its errors do not contain the address, which may hold a secret.
func Post(ctx context.Context, address string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if failed := new(url.Error); errors.As(err, &failed) {
		return failed.Err // without the address, which may hold a secret
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection is used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s", request.URL.Host, response.Status)
	}
	return nil
}
