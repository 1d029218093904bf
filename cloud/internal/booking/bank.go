package booking

import "slices"

// A Bank issues virtual accounts or receives refunds. Code is the payment provider's two-character code, which differs from
// the clearing code.
type Bank struct {
	Code   string
	Name   string // Korean
	Issues bool   // it issues virtual accounts
}

// banks is the provider's list: banks first, then securities firms, which can only receive refunds.
var banks = []Bank{
	{"39", "경남은행", true},
	{"34", "광주은행", true},
	{"12", "단위농협(지역농축협)", false},
	{"32", "부산은행", true},
	{"45", "새마을금고", true},
	{"64", "산림조합", false},
	{"88", "신한은행", true},
	{"48", "신협", false},
	{"27", "씨티은행", false},
	{"20", "우리은행", true},
	{"71", "우체국예금보험", true},
	{"50", "저축은행중앙회", false},
	{"37", "전북은행", false},
	{"35", "제주은행", false},
	{"90", "카카오뱅크", false},
	{"89", "케이뱅크", false},
	{"92", "토스뱅크", false},
	{"81", "하나은행", true},
	{"54", "홍콩상하이은행", false},
	{"03", "IBK기업은행", true},
	{"06", "KB국민은행", true},
	{"31", "iM뱅크(대구)", true},
	{"02", "KDB산업은행", false},
	{"11", "NH농협은행", true},
	{"23", "SC제일은행", false},
	{"07", "Sh수협은행", true},

	{"S8", "교보증권", false},
	{"SE", "대신증권", false},
	{"SK", "메리츠증권", false},
	{"S5", "미래에셋증권", false},
	{"SM", "부국증권", false},
	{"S3", "삼성증권", false},
	{"SN", "신영증권", false},
	{"S2", "신한투자증권", false},
	{"S0", "유안타증권", false},
	{"SJ", "유진투자증권", false},
	{"SQ", "카카오페이증권", false},
	{"SB", "키움증권", false},
	{"ST", "토스증권", false},
	{"SR", "한국포스증권", false},
	{"SH", "하나증권", false},
	{"S9", "iM증권", false},
	{"S6", "한국투자증권", false},
	{"SG", "한화투자증권", false},
	{"SA", "현대차증권", false},
	{"SI", "DB금융투자", false},
	{"S4", "KB증권", false},
	{"SP", "다올투자증권", false},
	{"SO", "LIG투자증권", false},
	{"SL", "NH투자증권", false},
	{"SD", "SK증권", false},
}

// Banks returns all banks and securities firms, banks first.
func Banks() []Bank { return slices.Clone(banks) }

// BankByCode returns the bank with the payment provider's code.
func BankByCode(code string) (Bank, bool) {
	for _, b := range banks {
		if b.Code == code {
			return b, true
		}
	}
	return Bank{}, false
}

// BankName returns the name of a bank, or the code itself if the bank is unknown.
func BankName(code string) string {
	if bank, ok := BankByCode(code); ok {
		return bank.Name
	}
	return code
}
