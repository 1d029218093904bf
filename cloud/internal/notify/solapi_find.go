package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// found is the number of recent messages to a recipient that Find reads.
const found = "100"

// Find implements [Finder]. It looks for the ID that Send passed along in the provider's list of messages to the
// number.
func (s *Solapi) Find(ctx context.Context, m Message) (Receipt, error) {
	to, err := mobile(m.To.Mobile)
	if err != nil || m.ID == "" {
		return Receipt{}, ErrNoRecords
	}
	address := strings.TrimSuffix(s.endpoint, "/send-many/detail") + "/list?" + url.Values{"to": {to}, "limit": {found}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Receipt{}, fmt.Errorf("notify: find: %w", err)
	}
	req.Header.Set("Authorization", s.authorization(s.cfg.Now(), salt()))
	resp, err := s.cfg.HTTPClient.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // the URL contains the phone number
		}
		return Receipt{}, fmt.Errorf("notify: find: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, solapiMaxBody))
	if err != nil {
		return Receipt{}, fmt.Errorf("notify: find: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Receipt{}, fmt.Errorf("notify: find: HTTP %d", resp.StatusCode)
	}
	return taken(body, m.ID)
}

// taken parses the provider's list. Any doubt is an error other than [ErrNotTaken].
func taken(body []byte, id string) (Receipt, error) {
	var answer struct {
		MessageList map[string]struct {
			MessageID    string            `json:"messageId"`
			Type         string            `json:"type"`
			CustomFields map[string]string `json:"customFields"`
		} `json:"messageList"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Receipt{}, fmt.Errorf("notify: find: decode the list: %w", err)
	}
	if answer.MessageList == nil {
		return Receipt{}, errors.New("notify: find: the response contains no list")
	}
	for _, message := range answer.MessageList {
		if message.CustomFields["id"] != id {
			continue
		}
		receipt := Receipt{Channel: SMS, ProviderID: message.MessageID}
		if message.Type == "ATA" {
			receipt.Channel = AlimTalk
		}
		return receipt, nil
	}
	return Receipt{}, ErrNotTaken
}
