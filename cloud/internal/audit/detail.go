package audit

import (
	"encoding/json"
	"regexp"
	"strings"
)

// configuration lists the prefixes of actions on settings, whose details may hold text. Everything else concerns guests.
var configuration = []string{"settings.", "room.", "channel.", "branch.", "agent.", "administrator.", "closure.", "token.", "webhook.", "company.", "entity.", "difference.", "discrepancy."}

// identifier matches what a detail about guests may hold as text: codes, ids and times, but no names, no sentences, no
// e-mail addresses and no phone numbers.
var (
	identifier  = regexp.MustCompile(`^[A-Za-z0-9_.:/+-]{0,64}$`)
	phoneNumber = regexp.MustCompile(`^\+?(82|0)[-.]?1[0-9][-.]?[0-9]{3,4}[-.]?[0-9]{4}$`)
)

const omitted = "(omitted)"

// SafeDetail returns the detail as JSON. In an entry that concerns guests, any text that is not an identifier is
// omitted, because an entry is permanent and must hold no personal data.
func (e Entry) SafeDetail() (json.RawMessage, error) {
	if e.Detail == nil {
		return json.RawMessage("{}"), nil
	}
	detail, err := json.Marshal(e.Detail)
	if err != nil {
		return nil, err
	}
	if string(detail) == "null" { // such as of a map that is nil
		return json.RawMessage("{}"), nil
	}
	for _, prefix := range configuration {
		if strings.HasPrefix(e.Action, prefix) {
			return detail, nil
		}
	}
	var value any
	if err := json.Unmarshal(detail, &value); err != nil {
		return nil, err
	}
	return json.Marshal(withoutText(value))
}

// ByGuest reports whether a guest is the actor.
func (e Entry) ByGuest() bool { return strings.HasPrefix(e.Actor, "customer") }

func withoutText(value any) any {
	switch v := value.(type) {
	case string:
		if !identifier.MatchString(v) || phoneNumber.MatchString(v) {
			return omitted
		}
	case []any:
		for i := range v {
			v[i] = withoutText(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withoutText(v[key])
		}
	}
	return value
}
