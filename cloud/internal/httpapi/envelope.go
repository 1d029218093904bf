package httpapi

import (
	"encoding/json"
	"net/http"
)

// envelope is the body of every JSON answer (interface.md, Response envelope). All five fields are always there.
type envelope struct {
	Status    string  `json:"status"`
	ErrorType *string `json:"errorType"`
	ErrorCode *string `json:"errorCode"`
	Message   *string `json:"message"`
	Data      any     `json:"data"`
}

// writeData answers 200 with data in the envelope; nil data becomes null.
func writeData(w http.ResponseWriter, data any) error {
	return writeEnvelope(w, http.StatusOK, envelope{Status: "success", Data: data})
}

func writeEnvelope(w http.ResponseWriter, status int, body envelope) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(encoded, '\n')) // the client is gone: nobody is left to tell
	return nil
}
