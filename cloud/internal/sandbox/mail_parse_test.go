package sandbox

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParseMail(f *testing.F) {
	f.Add("Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b--\r\n")
	f.Add("Subject: =?utf-8?b?7J24?=\r\nContent-Transfer-Encoding: base64\r\n\r\n7J24\r\n")
	f.Add("X-Yeolda-Variables: e30=\r\n\r\n")
	f.Fuzz(func(t *testing.T, data string) {
		m, err := parseMail(strings.NewReader(data))
		if err == nil && !utf8.ValidString(m.Text) {
			t.Fatalf("text %q of %q is not UTF-8", m.Text, data)
		}
	})
}
