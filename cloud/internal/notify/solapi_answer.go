package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// templateRefused lists the provider's codes for a misconfigured channel or template. They are returned at intake,
// where the provider does not fall back to SMS.
var templateRefused = map[string]bool{
	"1041": true, // KakaoTalk channel
	"1042": true, // template
	"1043": true, // text differs from the template
}

// refusal parses a response other than 200.
func refusal(status int, body []byte) *Error {
	var answer struct {
		ErrorCode string `json:"errorCode"`
	}
	_ = json.Unmarshal(body, &answer) // without a code the HTTP status decides
	e := &Error{Code: answer.ErrorCode, Err: fmt.Errorf("HTTP %d", status)}
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable,
		status == http.StatusInternalServerError && e.Code != "":
		// Sent by the provider itself, not by a proxy: the provider has not accepted the message.
		e.Class = Retryable
	case status >= 500, status < 400:
		e.Class = Unknown
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		// Keys, clock or credit: the operator has to fix them, after which the message can be sent.
		e.Class = Retryable
	default:
		e.Class = Permanent
	}
	return e
}

// accepted parses a 200 response, in which our single message may still be rejected.
func accepted(body []byte) (string, *Error) {
	type message struct {
		MessageID  string `json:"messageId"`
		StatusCode string `json:"statusCode"`
	}
	var answer struct {
		FailedMessageList []message `json:"failedMessageList"`
		MessageList       []message `json:"messageList"`
		GroupInfo         *struct {
			GroupID string `json:"groupId"`
			ID      string `json:"_id"`
		} `json:"groupInfo"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", &Error{Class: Unknown, Err: fmt.Errorf("decode answer: %w", err)}
	}
	if len(answer.FailedMessageList) > 0 {
		code := answer.FailedMessageList[0].StatusCode
		return "", &Error{Class: intakeClass(code), Code: code, Err: errors.New("rejected at intake")}
	}
	switch {
	case len(answer.MessageList) > 0 && answer.MessageList[0].MessageID != "":
		return answer.MessageList[0].MessageID, nil
	case answer.GroupInfo != nil && answer.GroupInfo.GroupID != "":
		return answer.GroupInfo.GroupID, nil
	case answer.GroupInfo != nil && answer.GroupInfo.ID != "":
		return answer.GroupInfo.ID, nil
	}
	return "", &Error{Class: Unknown, Err: errors.New("response contains no message id")}
}

// intakeClass classifies the status code of a message rejected at intake.
func intakeClass(code string) Class {
	switch {
	case code == "1030": // out of credit
		return Retryable
	case strings.HasPrefix(code, "2"): // the provider's platform
		return Retryable
	}
	return Permanent
}
