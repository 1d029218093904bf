package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
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
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(body); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(encoded.Len())) // an answer of unknown length takes another packet
	w.WriteHeader(status)
	_, _ = w.Write(encoded.Bytes()) // the client is gone: nobody is left to tell
	return nil
}
