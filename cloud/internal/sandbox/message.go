package sandbox

import (
	"slices"
	"strings"
	"time"
)

// The channels of messages.
const (
	ChannelAlimTalk = "alimtalk"
	ChannelSMS      = "sms"
	ChannelMail     = "mail"
)

// maxMessages bounds the number of stored messages.
const maxMessages = 20_000

// Message is a message received by a phone or mailbox.
type Message struct {
	ID        string            `json:"id"`
	GroupID   string            `json:"groupId"`
	At        time.Time         `json:"at"`
	Channel   string            `json:"channel"`
	To        string            `json:"to"` // digits or an e-mail address
	Template  string            `json:"template"`
	Variables map[string]string `json:"variables"` // names without #{}
	Subject   string            `json:"subject"`
	Reference string            `json:"reference,omitempty"` // the sender's own id of the message
	Text      string            `json:"text"`
}

// Messages returns the messages to a phone number (in any notation) or e-mail address, or all messages if to is
// empty, newest last.
func (s *Sandbox) Messages(to string) []Message {
	to = recipient(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Message{}
	for _, m := range s.state.Messages {
		if to == "" || m.To == to {
			found = append(found, m)
		}
	}
	return found
}

// arrive delivers a message. The caller holds s.mu.
func (s *Sandbox) arrive(m Message) {
	m.At, m.To = s.now().In(kst), recipient(m.To)
	if m.Variables == nil {
		m.Variables = map[string]string{}
	}
	s.state.addMessage(m)
	s.state.unsaved.Messages = append(s.state.unsaved.Messages, m)
}

func (st *state) addMessage(m Message) {
	if len(st.Messages) >= maxMessages {
		st.Messages = slices.Delete(st.Messages, 0, maxMessages/10)
	}
	st.Messages = append(st.Messages, m)
}

// recipient normalises a recipient for comparison: lower case for mail addresses, national digits for phone numbers.
func recipient(to string) string {
	if strings.Contains(to, "@") {
		return strings.ToLower(strings.TrimSpace(to))
	}
	number := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, to)
	if rest, ok := strings.CutPrefix(number, "82"); ok && len(number) > 10 {
		return "0" + rest
	}
	return number
}
