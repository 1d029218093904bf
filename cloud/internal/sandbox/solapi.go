package sandbox

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of the message API (docs/specification.md, Message provider).
const (
	maxAlimTalk        = 1000 // characters
	maxMessagesPerCall = 10_000
	maxMessageBody     = 1 << 20
)

// noKakaoTalk is the suffix of numbers without KakaoTalk, which receive the SMS instead.
const noKakaoTalk = "0000"

// Status codes of a message (docs/specification.md, Message provider 1).
const (
	statusAccepted     = "2000"
	statusDelivered    = "4000"
	statusInvalid      = "1025"
	statusDuplicate    = "1026"
	statusTooLong      = "1031"
	statusNoChannel    = "1041"
	statusNoTemplate   = "1042"
	statusNotKakaoTalk = "3104"
)

// sendRequest is one message of a request.
type sendRequest struct {
	To           string            `json:"to"`
	From         string            `json:"from"`
	Type         string            `json:"type"`
	Subject      string            `json:"subject"`
	Text         string            `json:"text"`
	Country      string            `json:"country"`
	CustomFields map[string]string `json:"customFields"`
	KakaoOptions *struct {
		PfID       string            `json:"pfId"`
		TemplateID string            `json:"templateId"`
		Variables  map[string]string `json:"variables"`
		DisableSMS bool              `json:"disableSms"`
	} `json:"kakaoOptions"`
}

// sentMessage is the API's record of a message.
type sentMessage struct {
	MessageID     string            `json:"messageId"`
	GroupID       string            `json:"groupId"`
	AccountID     string            `json:"accountId"`
	To            string            `json:"to"`
	From          string            `json:"from"`
	Type          string            `json:"type"`
	Country       string            `json:"country"`
	StatusCode    string            `json:"statusCode"`
	StatusMessage string            `json:"statusMessage"`
	CustomFields  map[string]string `json:"customFields,omitempty"`
}

func (m *sentMessage) failed() bool { return m.StatusCode != statusAccepted }

// solapi serves one endpoint of the message API. do runs with s.mu held.
func (s *Sandbox) solapi(do func(*http.Request, []byte, *Fault) (any, *messageError)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessageBody))
		if err != nil {
			writeJSON(w, http.StatusRequestEntityTooLarge, &messageError{Code: "PayloadTooLarge", Message: "요청이 너무 큽니다."})
			return
		}
		if e := s.authenticateMessage(r.Header.Get("Authorization")); e != nil {
			writeJSON(w, e.status, e)
			return
		}
		var fault *Fault
		if r.Method == http.MethodPost {
			var timedOut bool
			if fault, timedOut = s.meet(TargetMessages, r.Context()); timedOut {
				hangUp(w)
				return
			}
		}
		if fault.is(FaultError) && !statusCode.MatchString(fault.Code) {
			e := fault.messageError()
			writeJSON(w, e.status, e)
			return
		}
		s.mu.Lock()
		v, e := do(r, body, fault)
		s.keep()
		s.mu.Unlock()
		switch {
		case fault.is(FaultDropAfterCommit):
			hangUp(w)
		case e != nil:
			writeJSON(w, e.status, e)
		default:
			writeJSON(w, http.StatusOK, v)
		}
	}
}

// statusCode matches fault codes that fail the message instead of the request.
var statusCode = regexp.MustCompile(`^[1-3][0-9]{3}$`)

func (f *Fault) messageError() *messageError {
	e := &messageError{status: http.StatusInternalServerError, Code: "InternalError", Message: "일시적인 오류가 발생했습니다."}
	if f.Status != 0 {
		e.status = f.Status
	}
	if f.Code != "" {
		e.Code = f.Code
	}
	if f.Message != "" {
		e.Message = f.Message
	}
	return e
}

// sendMany handles POST /messages/v4/send-many/detail. It answers 200 even if every message was rejected; rejected
// messages are in failedMessageList.
func (s *Sandbox) sendMany(_ *http.Request, body []byte, fault *Fault) (any, *messageError) {
	var in struct {
		Messages        []sendRequest `json:"messages"`
		AllowDuplicates bool          `json:"allowDuplicates"`
		ShowMessageList bool          `json:"showMessageList"`
	}
	if err := json.Unmarshal(body, &in); err != nil || len(in.Messages) == 0 || len(in.Messages) > maxMessagesPerCall {
		return nil, &messageError{status: http.StatusBadRequest, Code: "ValidationError", Message: "messages는 필수입니다."}
	}
	group := "G4V" + s.now().UTC().Format("20060102150405") + strings.ToUpper(randomHex(8))
	failed, sent := []sentMessage{}, []sentMessage{}
	seen := map[string]bool{}
	for _, m := range in.Messages {
		duplicate := !in.AllowDuplicates && seen[recipient(m.To)]
		seen[recipient(m.To)] = true
		if result := s.send(m, group, duplicate, fault); result.failed() {
			failed = append(failed, result)
		} else {
			sent = append(sent, result)
		}
	}
	answer := map[string]any{
		"groupInfo": map[string]any{
			"_id": group, "groupId": group, "status": "SENDING", "accountId": demoAccount,
			"count": map[string]int{
				"total": len(in.Messages), "sentTotal": 0, "sentSuccess": 0, "sentFailed": 0, "sentPending": 0,
				"sentReplacement": 0, "registeredSuccess": len(sent), "registeredFailed": len(failed),
			},
		},
		"failedMessageList": failed,
	}
	if in.ShowMessageList {
		answer["messageList"] = sent
	}
	return answer, nil
}

// sendOne handles POST /messages/v4/send. Unlike sendMany it answers a rejected message with an error.
func (s *Sandbox) sendOne(_ *http.Request, body []byte, fault *Fault) (any, *messageError) {
	var in struct {
		Message *sendRequest `json:"message"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Message == nil {
		return nil, &messageError{status: http.StatusBadRequest, Code: "ValidationError", Message: "message는 필수입니다."}
	}
	result := s.send(*in.Message, "G4V"+strings.ToUpper(randomHex(14)), false, fault)
	if result.failed() {
		return nil, &messageError{status: http.StatusBadRequest, Code: result.StatusCode, Message: result.StatusMessage}
	}
	return result, nil
}

// demoAccount is the account behind the demo key.
const demoAccount = "25112100000001"

// send accepts one message and, unless it is invalid, delivers it at once. The caller holds s.mu.
func (s *Sandbox) send(m sendRequest, group string, duplicate bool, fault *Fault) sentMessage {
	result := sentMessage{
		MessageID: "M4V" + s.now().UTC().Format("20060102150405") + strings.ToUpper(randomHex(8)), GroupID: group, AccountID: demoAccount,
		To: m.To, From: m.From, Type: m.Type, Country: "82", CustomFields: m.CustomFields,
		StatusCode: statusAccepted, StatusMessage: "정상 접수(이통사로 접수 예정) ",
	}
	if m.Type == "" {
		result.Type = "SMS"
		if m.KakaoOptions != nil {
			result.Type = "ATA"
		}
	}
	fail := func(code, message string) sentMessage {
		result.StatusCode, result.StatusMessage = code, message
		return result
	}
	if fault.is(FaultError) {
		return fail(fault.Code, cmp.Or(fault.Message, "테스트로 지정한 실패입니다."))
	}
	if code, message := refusal(m, result.Type, duplicate); code != "" {
		return fail(code, message)
	}

	arrived := Message{
		ID: result.MessageID, GroupID: group, Channel: ChannelSMS, To: m.To,
		Template: m.CustomFields["template"], Subject: m.Subject, Text: m.Text, Reference: m.CustomFields["id"],
	}
	if result.Type == "ATA" {
		kakao := m.KakaoOptions
		arrived.Channel = ChannelAlimTalk
		if arrived.Template == "" {
			arrived.Template = kakao.TemplateID
		}
		arrived.Variables = make(map[string]string, len(kakao.Variables))
		for name, value := range kakao.Variables {
			arrived.Variables[strings.TrimSuffix(strings.TrimPrefix(name, "#{"), "}")] = value
		}
		arrived.Text = render(m.Text, arrived.Variables)
		if utf8.RuneCountInString(arrived.Text) > maxAlimTalk {
			return fail(statusTooLong, "내용이 너무 깁니다.")
		}
		if strings.HasSuffix(m.To, noKakaoTalk) {
			if kakao.DisableSMS {
				return fail(statusNotKakaoTalk, "카카오톡 미사용자입니다.")
			}
			arrived.Channel = ChannelSMS
		}
	}
	s.arrive(arrived)
	return result
}

// refusal returns why a message of a type is not accepted, or "".
func refusal(m sendRequest, kind string, duplicate bool) (code, message string) {
	kakao := m.KakaoOptions
	switch {
	case duplicate:
		return statusDuplicate, "중복 수신번호입니다."
	case !digits(m.To) || len(m.To) < 8 || len(m.To) > 15, !digits(m.From):
		return statusInvalid, "수신번호 또는 발신번호가 올바르지 않습니다."
	case kind == "ATA" && (kakao == nil || kakao.PfID == ""):
		return statusNoChannel, "카카오톡 채널(pfId)이 없습니다."
	case kind == "ATA" && kakao.TemplateID == "":
		return statusNoTemplate, "알림톡 템플릿이 없습니다."
	case kind != "ATA" && kind != "SMS" && kind != "LMS":
		return statusInvalid, "지원하지 않는 메시지 타입입니다."
	case kind != "ATA" && m.Text == "":
		return statusInvalid, "내용이 없습니다."
	}
	return "", ""
}

var placeholder = regexp.MustCompile(`#\{([^{}]+)\}`)

// render inserts the variables into a text. If the text is empty, it lists the variables, because the approved template
// is stored only at KakaoTalk.
func render(text string, variables map[string]string) string {
	if text == "" {
		var b strings.Builder
		for name, value := range sorted(variables) {
			b.WriteString(name + ": " + value + "\n")
		}
		return strings.TrimSpace(b.String())
	}
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		if value, ok := variables[p[2:len(p)-1]]; ok {
			return value
		}
		return p
	})
}

// listMessages handles GET /messages/v4/list: delivered messages by messageId, groupId or to.
func (s *Sandbox) listMessages(r *http.Request, _ []byte, _ *Fault) (any, *messageError) {
	q := r.URL.Query()
	list := map[string]any{}
	for _, m := range s.state.Messages {
		if m.Channel == ChannelMail ||
			q.Get("messageId") != "" && q.Get("messageId") != m.ID ||
			q.Get("groupId") != "" && q.Get("groupId") != m.GroupID ||
			q.Get("to") != "" && recipient(q.Get("to")) != m.To {
			continue
		}
		kind := "SMS"
		if m.Channel == ChannelAlimTalk {
			kind = "ATA"
		}
		list[m.ID] = map[string]any{
			"messageId": m.ID, "groupId": m.GroupID, "accountId": demoAccount, "to": m.To, "type": kind, "text": m.Text,
			"country": "82", "status": "COMPLETE", "statusCode": statusDelivered,
			"dateCreated": m.At.UTC().Format(time.RFC3339), "customFields": map[string]string{"id": m.Reference, "template": m.Template},
		}
	}
	return map[string]any{"limit": 20, "startKey": nil, "nextKey": nil, "messageList": list}, nil
}
