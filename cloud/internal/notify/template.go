package notify

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Template is the name of a message. Its text in each language is in templates/, as registered with KakaoTalk: the
// subject, a blank line, then the text with its #{variables}. #{prefix} and #{brand} stand for the [Brand], whose name
// the registered text contains.
type Template string

const (
	LoginCode            Template = "login-code"
	ReservationConfirmed Template = "reservation-confirmed"
	// As above, with the PIN: its disclosure has begun.
	ReservationConfirmedPIN Template = "reservation-confirmed-pin"
	DepositConfirmedPIN     Template = "deposit-confirmed-pin"
	VirtualAccountIssued    Template = "virtual-account-issued"
	DepositConfirmed        Template = "deposit-confirmed"
	DepositOverdue          Template = "deposit-overdue"
	DepositReversed         Template = "deposit-reversed"
	ReservationCanceled     Template = "reservation-canceled"
	ReservationUnrefunded   Template = "reservation-canceled-unrefunded" // it was paid, and no money is returned
	ReservationEnded        Template = "reservation-ended"               // canceled, and nothing was paid
	PaymentFailed           Template = "payment-failed"                  // an unclear payment turned out not to be charged
	PaymentReturned         Template = "payment-returned"                // it was charged too late, and is refunded
	PartRefunded            Template = "part-refunded"                   // a part of the payment or all of it, and the reservation stays
	RefundFailed            Template = "refund-failed"
	RefundAccountNeeded     Template = "refund-account" // with a link where the guest enters the account
	ReservationMoved        Template = "reservation-moved"
	KeyChanged              Template = "key-changed"      // the previous key opens nothing
	RefundCompleted         Template = "refund-completed" // by the bank, after a cancellation
	StayReminder            Template = "stay-reminder"    // an hour before the start
	StayPIN                 Template = "stay-pin"         // half an hour before the start
	StayEnding              Template = "stay-ending"      // ten minutes before the end
	StayDoorFailed          Template = "stay-door-failed"
	StayNotArrived          Template = "stay-not-arrived"  // a quarter of an hour after the start
	FranchiseInquiry        Template = "franchise-inquiry" // to the headquarters, by mail
	AlertBegan              Template = "alert-began"       // to staff
	AlertEnded              Template = "alert-ended"
	StayExtended            Template = "stay-extended"
	StayCompensated         Template = "stay-compensated"              // extended without charge, because a door did not open
	ExtensionCanceled       Template = "extension-canceled"            // of a paid extension, with the refund
	ExtensionUnrefunded     Template = "extension-canceled-unrefunded" // it was paid, and no money is returned; the stay before it is as it was
	ExtensionEnded          Template = "extension-ended"               // canceled, and nothing was paid; the stay before it is as it was
	ExtensionReversed       Template = "extension-reversed"            // the bank took the deposit of an extension back; the stay before it is as it was
	DailyProof              Template = "proof"                         // to the headquarters, by mail
)

// Language is the language of a message's text.
type Language string

const (
	Korean  Language = "ko"
	English Language = "en"
)

// Text is a template with its variables filled in.
type Text struct {
	Subject string // one line
	Body    string
}

//go:embed templates
var templateFiles embed.FS

// source is a parsed template file.
type source struct {
	subject, body string
	variables     []string // sorted, without duplicates
}

type sourceKey struct {
	template Template
	language Language
}

var sources = func() map[sourceKey]source {
	all, err := readSources(templateFiles)
	if err != nil {
		panic(err) // the files are embedded in the program
	}
	return all
}()

var placeholder = regexp.MustCompile(`#\{([A-Za-z]+)\}`)

func readSources(files fs.FS) (map[sourceKey]source, error) {
	paths, err := fs.Glob(files, "templates/*/*.txt")
	if err != nil {
		return nil, err
	}
	all := make(map[sourceKey]source, len(paths))
	for _, path := range paths {
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		subject, body, ok := strings.Cut(string(b), "\n\n")
		if !ok || strings.Contains(subject, "\n") {
			return nil, fmt.Errorf("%s: want one line of subject, a blank line and the text", path)
		}
		names := map[string]bool{}
		for _, m := range placeholder.FindAllStringSubmatch(string(b), -1) {
			names[m[1]] = m[1] != prefixVariable && m[1] != brandVariable
		}
		maps.DeleteFunc(names, func(_ string, own bool) bool { return !own })
		part := strings.Split(path, "/")
		key := sourceKey{Template(strings.TrimSuffix(part[2], ".txt")), Language(part[1])}
		all[key] = source{subject, strings.TrimSuffix(body, "\n"), slices.Sorted(maps.Keys(names))}
	}
	return all, nil
}

// Templates returns all templates in alphabetical order.
func Templates() []Template {
	var list []Template
	for key := range sources {
		if key.language == Korean {
			list = append(list, key.template)
		}
	}
	slices.Sort(list)
	return list
}

// keyTemplates are the messages without which a guest cannot enter: those that carry a key.
var keyTemplates = sync.OnceValue(func() (list []string) {
	for _, template := range Templates() {
		if slices.Contains(template.Variables(), "doorlockKey") {
			list = append(list, string(template))
		}
	}
	return list
})

// KeyTemplates returns the templates of the messages that carry a key.
func KeyTemplates() []string { return keyTemplates() }

// StayTemplates returns the templates of the messages that carry a key, a link with it, or the time of a stay, and are not sent at a time
// of the stay.
func StayTemplates() []string { return append(names(StayExtended, StayCompensated), KeyTemplates()...) }

// ReplacingTemplates returns the templates of the messages after which the key or the time of an earlier one is wrong. A confirmation
// after a reversed deposit has another key.
func ReplacingTemplates() []string {
	return names(KeyChanged, ReservationMoved, DepositReversed, ExtensionReversed, DepositConfirmed, DepositConfirmedPIN, ReservationConfirmed, ReservationConfirmedPIN)
}

// AwaitingTemplates returns the templates of the messages that are right only while a deposit is awaited.
func AwaitingTemplates() []string {
	return names(VirtualAccountIssued, DepositReversed, ExtensionReversed)
}

// RefundTemplates returns the templates of the messages that are right only while a refund waits for the guest.
func RefundTemplates() []string { return names(RefundAccountNeeded, RefundFailed) }

// OutcomeTemplates returns the templates of the messages about money and extensions that remain right. A corrected contact receives those
// that the previous one did not.
func OutcomeTemplates() []string {
	return names(PartRefunded, RefundCompleted, PaymentFailed, PaymentReturned, ExtensionCanceled, ExtensionUnrefunded, ExtensionEnded)
}

func names(templates ...Template) []string {
	list := make([]string, len(templates))
	for i, t := range templates {
		list[i] = string(t)
	}
	return list
}

// Variables returns the variables that a message of this template requires, sorted; nil if the template does not
// exist.
func (t Template) Variables() []string {
	return slices.Clone(sources[sourceKey{t, Korean}].variables)
}

// ErrNoTemplate is returned by [Message.Render] if the template does not exist in the language.
var ErrNoTemplate = errors.New("no template")

// Render validates the message and fills in the text. It fails with [ErrNoTemplate], or if a variable is missing or empty. It
// ignores variables that the template does not use.
func (m Message) Render() (Text, error) {
	if err := m.checkID(); err != nil {
		return Text{}, err
	}
	key := sourceKey{m.Template, m.language()}
	src, ok := sources[key]
	if !ok {
		return Text{}, fmt.Errorf("%w %q in language %q", ErrNoTemplate, key.template, key.language)
	}
	for _, name := range src.variables {
		if m.value(name) == "" {
			return Text{}, fmt.Errorf("template %q: variable %q is missing", m.Template, name)
		}
	}
	// A single pass: a value that looks like a placeholder is not expanded.
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(found string) string {
			return m.value(found[2 : len(found)-1])
		})
	}
	return Text{oneLine(fill(src.subject)), fill(src.body)}, nil
}

// Brand is the sender as guests read it. An empty field is as shipped.
type Brand struct {
	Ko, En string // the name in each language
	Prefix string // in brackets before the subject; empty: the name
	Phone  string // of the operator, for a branch without a number
}

// DefaultBrand is the shipped one.
var DefaultBrand = Brand{Ko: "열다", En: "Yeolda"}

// Placeholders of the brand, which are not variables: the registered text contains the names themselves.
const (
	prefixVariable = "prefix"
	brandVariable  = "brand"
)

func (m Message) brand() string {
	name, shipped := m.Brand.Ko, DefaultBrand.Ko
	if m.language() == English {
		name, shipped = m.Brand.En, DefaultBrand.En
	}
	return cmp.Or(name, shipped)
}

// value returns a variable as shown to the recipient. Variables that may be empty have a substitute, because a message with a
// key must not fail: a generic form of address for the name, the branch's name for its address, the operator for its phone.
func (m Message) value(name string) string {
	switch name {
	case prefixVariable:
		return oneLine(cmp.Or(m.Brand.Prefix, m.brand()))
	case brandVariable:
		return oneLine(m.brand())
	}
	v := m.Variables[name]
	if name != "message" { // only an inquiry has lines of its own: a name must not add any to a message
		v = oneLine(v)
	}
	if v = strings.TrimSpace(printable(v)); v != "" {
		return v
	}
	switch name {
	case "name":
		return map[Language]string{Korean: "고객", English: "Dear guest"}[m.language()]
	case "address":
		return m.value("branch")
	case "doors": // a message that an earlier release has queued
		return map[Language]string{Korean: "현관문과 룸 문", English: "the entrance and that of your room"}[m.language()]
	case "phone":
		return cmp.Or(oneLine(m.Brand.Phone), map[Language]string{Korean: "고객센터", English: "our office"}[m.language()])
	}
	return ""
}

func (m Message) language() Language {
	if m.Language == "" {
		return Korean
	}
	return m.Language
}

// used returns the template's variables and no others.
func (m Message) used() map[string]string {
	vars := map[string]string{}
	for _, name := range sources[sourceKey{m.Template, m.language()}].variables {
		vars[name] = m.value(name)
	}
	return vars
}

// printable removes control and invisible formatting characters except line breaks: names and inquiries are user
// input.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		if unicode.IsSpace(r) {
			return ' '
		}
		return -1
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// oneLine is printable without line breaks.
func oneLine(s string) string { return strings.ReplaceAll(printable(s), "\n", " ") }
