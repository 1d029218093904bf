package wire

import (
	"regexp"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// CashReceipt is the cash receipt that a request asks for.
type CashReceipt struct {
	Type   *string `json:"type"`
	Number *string `json:"number"`
}

var personalNumber = regexp.MustCompile(`^01[016789]\d{7,8}$`)

// The names of its fields in messages.
const typeField, numberField = "cashReceipt.type", "cashReceipt.number"

// Wish returns the type and the digits of the number; both are empty if none is asked for.
func (c *CashReceipt) Wish() (money.ReceiptType, string, error) {
	if c == nil || Blank(c.Type) && Blank(c.Number) {
		return "", "", nil
	}
	kind, err := Text(typeField, c.Type, 20)
	if err != nil {
		return "", "", err
	}
	number, err := Text(numberField, c.Number, 30)
	if err != nil {
		return "", "", err
	}
	switch money.ReceiptType(kind) {
	case money.PersonalReceipt:
		if number = booking.NormalizePhone(number); !personalNumber.MatchString(number) {
			return "", "", Malformed(numberField)
		}
	case money.BusinessReceipt:
		if number = strings.NewReplacer("-", "", " ", "").Replace(number); !businessNumber(number) {
			return "", "", Malformed(numberField)
		}
	default:
		return "", "", UnknownValue(typeField)
	}
	return money.ReceiptType(kind), number, nil
}

// businessNumber checks the length and the check digit of a Korean business registration number.
func businessNumber(number string) bool {
	if len(number) != 10 || strings.Trim(number, "0123456789") != "" {
		return false
	}
	sum := int(number[8]-'0') * 5 / 10
	for i, weight := range []int{1, 3, 7, 1, 3, 7, 1, 3, 5} {
		sum += int(number[i]-'0') * weight
	}
	return (10-sum%10)%10 == int(number[9]-'0')
}

// IssuedReceipt is a cash receipt as it is shown.
type IssuedReceipt struct {
	Type        string  `json:"type"`
	Number      *string `json:"number"` // masked
	Status      string  `json:"status"`
	Amount      int     `json:"amount"`
	IssueNumber *string `json:"issueNumber"`
	URL         *string `json:"url"`
}

// Issued returns a cash receipt as it is shown; nil if none was asked for.
func Issued(c money.CashReceipt) *IssuedReceipt {
	if c.Type == "" {
		return nil
	}
	return &IssuedReceipt{string(c.Type), Nullable(c.Masked), string(c.State), c.Standing, Nullable(c.IssueNumber), Nullable(c.URL)}
}
