package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/yeolda/yeolda/agent/internal/durable"
	"github.com/yeolda/yeolda/protocol"
)

// listFile is the content of a file with a signed list of the cloud. The list belongs to a credential: a machine that was enrolled
// again begins without one.
type listFile[L protocol.Message] struct {
	Username string `json:"username"`
	List     L      `json:"list"`
}

// readList returns the stored list of a credential; nil if there is none, or no file.
func readList[L protocol.Message](file, username string) (*L, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var s listFile[L]
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Username == username {
		err = s.List.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("stored %s: %w", s.List.Kind(), err)
	}
	if s.Username != username {
		return nil, nil
	}
	return &s.List, nil
}

// writeList stores a list of a credential, if there is a file.
func writeList[L protocol.Message](file, username string, list L) error {
	if file == "" {
		return nil
	}
	text, err := json.Marshal(listFile[L]{username, list})
	if err != nil {
		return err
	}
	if err := durable.Replace(file, text); err != nil {
		return fmt.Errorf("store %s: %w", list.Kind(), err)
	}
	return nil
}
