package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// signatureLife is the accepted clock difference of a request, and how long a signature is remembered so that it is
// valid for one request only (docs/specification.md, Message provider 1).
const signatureLife = 15 * time.Minute

// messageError is a response of the message API other than 200.
type messageError struct {
	status  int
	Code    string `json:"errorCode"`
	Message string `json:"errorMessage"`
}

func (e *messageError) Error() string { return e.Code + ": " + e.Message }

func forbid(code, message string) *messageError {
	return &messageError{status: http.StatusForbidden, Code: code, Message: message}
}

// messageAuth is a parsed Authorization header of the message API.
type messageAuth struct {
	apiKey, date, salt, signature string
	at                            time.Time
}

// parseMessageAuth parses "HMAC-SHA256 apiKey=…, date=…, salt=…, signature=…".
func parseMessageAuth(header string) (messageAuth, error) {
	scheme, fields, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "HMAC-SHA256") {
		return messageAuth{}, errors.New("the scheme is not HMAC-SHA256")
	}
	var a messageAuth
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		var target *string
		switch name {
		case "apiKey":
			target = &a.apiKey
		case "date":
			target = &a.date
		case "salt":
			target = &a.salt
		case "signature":
			target = &a.signature
		default:
			return messageAuth{}, fmt.Errorf("unknown field %q", name)
		}
		if *target != "" {
			return messageAuth{}, fmt.Errorf("field %q comes twice", name)
		}
		*target = value
	}
	if a.apiKey == "" || a.date == "" || a.signature == "" {
		return messageAuth{}, errors.New("apiKey, date, salt and signature are required")
	}
	if len(a.salt) < 12 || len(a.salt) > 64 {
		return messageAuth{}, errors.New("salt must be 12 to 64 characters")
	}
	at, err := time.Parse(time.RFC3339, a.date)
	if err != nil {
		return messageAuth{}, fmt.Errorf("date: %w", err)
	}
	a.at = at
	return a, nil
}

// authenticateMessage verifies the sender. A signature is consumed by its first request, even if that request is
// rejected later.
func (s *Sandbox) authenticateMessage(header string) *messageError {
	a, err := parseMessageAuth(header)
	if err != nil {
		return &messageError{status: http.StatusUnauthorized, Code: "Unauthorized", Message: err.Error()}
	}
	if a.apiKey != s.opts.MessageKey {
		return forbid("InvalidAPIKey", "유효하지 않은 API Key입니다.")
	}
	mac := hmac.New(sha256.New, []byte(s.opts.MessageSecret))
	mac.Write([]byte(a.date + a.salt))
	if !hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(a.signature)) {
		return forbid("SignatureDoesNotMatch", "시그니처가 일치하지 않습니다.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if d := now.Sub(a.at); d > signatureLife || d < -signatureLife {
		return forbid("RequestTimeTooSkewed", "요청 시각이 서버 시각과 15분 이상 차이가 납니다.")
	}
	if now.Sub(s.signaturesSwept) > time.Minute {
		s.signaturesSwept = now
		maps.DeleteFunc(s.signatures, func(_ string, seen time.Time) bool { return now.Sub(seen) > 2*signatureLife })
	}
	if _, ok := s.signatures[a.signature]; ok {
		return forbid("DuplicatedSignature", "이미 사용된 시그니처입니다.")
	}
	s.signatures[a.signature] = now
	return nil
}
