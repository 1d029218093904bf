package sandbox

import (
	"cmp"
	"slices"
	"strings"
)

// issuing lists the banks that issue virtual accounts, by the code and the Korean and English names that the provider
// accepts (docs/specification.md, Payment provider 8).
var issuing = map[string]string{
	"39": "39 경남 KYONGNAMBANK", "34": "34 광주 GWANGJUBANK", "32": "32 부산 BUSANBANK", "45": "45 새마을 SAEMAUL",
	"88": "88 신한 SHINHAN", "20": "20 우리 WOORI", "71": "71 우체국 POST", "81": "81 하나 HANA", "03": "03 기업 IBK",
	"06": "06 국민 KOOKMIN", "31": "31 대구 DAEGUBANK", "11": "11 농협 NONGHYEOP", "07": "07 수협 SUHYEOP",
}

// refundable lists the codes of all banks and securities firms that accept refunds (docs/specification.md, Payment provider 8).
var refundable = " 39 34 12 32 45 64 88 48 27 20 71 50 37 35 90 89 92 81 54 03 06 31 02 11 23 07" +
	" S8 SE SK S5 SM S3 SN S2 S0 SJ SQ SB ST SR SH S9 S6 SG SA SI S4 SP SO SL SD "

// issuingBank returns the code of a bank given by code or name.
func issuingBank(text string) (code string, ok bool) {
	for code, names := range issuing {
		for name := range strings.FieldsSeq(names) {
			if text == name {
				return code, true
			}
		}
	}
	return "", false
}

func refundableBank(code string) bool {
	return len(code) == 2 && strings.Contains(refundable, " "+code+" ")
}

// bankChoice is one entry of the widget's list of banks.
type bankChoice struct{ Code, Name string }

// issuingBanks returns the banks of the widget by name.
func issuingBanks() []bankChoice {
	var banks []bankChoice
	for code, names := range issuing {
		banks = append(banks, bankChoice{code, strings.Fields(names)[1]})
	}
	slices.SortFunc(banks, func(a, b bankChoice) int { return cmp.Compare(a.Name, b.Name) })
	return banks
}
