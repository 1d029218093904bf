package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// Envelope is the body of every JSON answer. All five fields are always present.
type Envelope struct {
	Status    string  `json:"status"`
	ErrorType *string `json:"errorType"`
	ErrorCode *string `json:"errorCode"`
	Message   *string `json:"message"`
	Data      any     `json:"data"`
}

// WriteData answers 200 with data in the envelope; nil data becomes null.
func WriteData(w http.ResponseWriter, data any) error {
	return WriteEnvelope(w, http.StatusOK, Envelope{Status: "success", Data: data})
}

// WriteEnvelope writes an answer with a status.
func WriteEnvelope(w http.ResponseWriter, status int, body Envelope) error {
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(body); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(encoded.Len())) // chunked encoding would cost another packet
	w.WriteHeader(status)
	_, _ = w.Write(encoded.Bytes()) // the client has closed the connection
	return nil
}
