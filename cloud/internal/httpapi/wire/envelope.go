package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
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
	encoded, err := encode(body)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	write(w, status, encoded)
	return nil
}

func encode(body Envelope) ([]byte, error) {
	var encoded bytes.Buffer
	err := json.NewEncoder(&encoded).Encode(body)
	return encoded.Bytes(), err
}

func write(w http.ResponseWriter, status int, encoded []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded))) // chunked encoding would cost another packet
	w.WriteHeader(status)
	_, _ = w.Write(encoded) // the client has closed the connection
}

// Answer is an encoded answer 200 that a client may keep, provided it asks each time whether it is still current (RFC 9110,
// section 13.1.2).
type Answer struct {
	encoded []byte
	tag     string
}

// EncodeData encodes data in the envelope.
func EncodeData(data any) (Answer, error) {
	encoded, err := encode(Envelope{Status: "success", Data: data})
	sum := sha256.Sum256(encoded)
	return Answer{encoded, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, err
}

// Size returns the number of bytes that the answer occupies.
func (a Answer) Size() int { return len(a.encoded) + len(a.tag) }

// Write answers 304 to a client that has the answer already, and 200 otherwise.
func (a Answer) Write(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", a.tag)
	if a.isKnown(r.Header.Values("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, http.StatusOK, a.encoded)
}

// isKnown reports whether a client names the answer's tag. A proxy that compresses answers makes the tag a weak one.
func (a Answer) isKnown(headers []string) bool {
	for _, header := range headers {
		for tag := range strings.SplitSeq(header, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == a.tag {
				return true
			}
		}
	}
	return false
}
