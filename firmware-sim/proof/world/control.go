package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// getJSON reads a value from a panel.
func getJSON(ctx context.Context, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := control.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// Ask sends a request to the sandbox's or the simulator's control and decodes the answer, unless into is nil.
func Ask(method, address string, body, into any) (status int, err error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, address, content) //nolint:noctx // it ends with the client's time-out, so that what was begun has an outcome
	if err != nil {
		return 0, err
	}
	response, err := control.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode >= 300 {
		return response.StatusCode, fmt.Errorf("%s %s: %s: %.200s", method, address, response.Status, text)
	}
	if into == nil {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.Unmarshal(text, into)
}
