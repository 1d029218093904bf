package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// templateRefused lists the provider's codes for a channel or template that is set up
// wrongly. They are given at intake, where no SMS fallback happens.
var templateRefused = map[string]bool{
	"1041": true, // KakaoTalk channel
	"1042": true, // template
	"1043": true, // text differs from the template
}

// refusal reads an answer that is not 200.
func refusal(status int, body []byte) *Error {
	var answer struct {
		ErrorCode string `json:"errorCode"`
	}
	_ = json.Unmarshal(body, &answer) // without a code the status decides
	e := &Error{Code: answer.ErrorCode, Err: fmt.Errorf("HTTP %d", status)}
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable,
		status == http.StatusInternalServerError && e.Code != "":
		// Said by the provider itself, not by something in between: it has not taken the message.
		e.Class = Retryable
	case status >= 500, status < 400:
		e.Class = Unknown
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		// Keys, clock or credit: the operator's to mend, and then the message can go.
		e.Class = Retryable
	default:
		e.Class = Permanent
	}
	return e
}

// accepted reads a 200, which may still hide that our one message was refused.
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
		return "", &Error{Class: intakeClass(code), Code: code, Err: errors.New("refused at intake")}
	}
	switch {
	case len(answer.MessageList) > 0 && answer.MessageList[0].MessageID != "":
		return answer.MessageList[0].MessageID, nil
	case answer.GroupInfo != nil && answer.GroupInfo.GroupID != "":
		return answer.GroupInfo.GroupID, nil
	case answer.GroupInfo != nil && answer.GroupInfo.ID != "":
		return answer.GroupInfo.ID, nil
	}
	return "", &Error{Class: Unknown, Err: errors.New("answer names no message")}
}

// intakeClass classifies the status code of a message refused at intake.
func intakeClass(code string) Class {
	switch {
	case code == "1030": // out of credit
		return Retryable
	case strings.HasPrefix(code, "2"): // the provider's platform
		return Retryable
	}
	return Permanent
}
