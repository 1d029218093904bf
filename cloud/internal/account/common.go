package account

import (
	"slices"
	"strings"
	"unicode"
)

// commonWords are what common passwords of twelve characters and more consist of, once digits and signs are removed.
var commonWords = strings.Fields(`
	password passwort passw0rd pass admin administrator root user login guest test demo welcome letmein changeme secret
	default master system service manager hq yeolda server computer internet qwerty qwertyuiop qwertz azerty asdf asdfgh
	asdfghjkl zxcv zxcvbn zxcvbnm qaz wsx edc qazwsx qazwsxedc qwer iloveyou love sunshine princess football baseball
	dragon monkey shadow michael superman batman trustno hello abc abcd abcdef abcdefg abcdefgh abcdefghijkl aaa korea seoul
	samsung naver kakao summer winter spring autumn monday january company office hotel dkssud rkskek wjdrhks qlalfqjsgh`)

// commonPassword reports whether a password is among the first that an attacker tries: few different characters, a
// sequence, a repetition, or a common word with digits and signs around it.
func commonPassword(password string) bool {
	text := strings.ToLower(password)
	return differentRunes(text) < 5 || sequence(text) || repetition(text) || commonWord(text)
}

func differentRunes(s string) int {
	seen := map[rune]bool{}
	for _, r := range s {
		seen[r] = true
	}
	return len(seen)
}

// sequence reports whether neighbours on the keyboard, in the alphabet or among the digits make up the whole text.
func sequence(s string) bool {
	const runs = "abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz 01234567890123456789 1q2w3e4r5t6y7u8i9o0p qwertyuiop asdfghjkl zxcvbnm 1qaz2wsx3edc4rfv5tgb6yhn"
	for len(s) > 0 {
		n := len(s)
		for n >= 3 && !strings.Contains(runs, s[:n]) && !strings.Contains(runs, reversed(s[:n])) {
			n--
		}
		if n < 3 {
			return len(s) < 3
		}
		s = s[n:]
	}
	return true
}

func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// repetition reports whether a text of at most six characters is repeated.
func repetition(s string) bool {
	for n := 1; n <= 6 && n < len(s); n++ {
		if strings.HasPrefix(strings.Repeat(s[:n], len(s)/n+1), s) {
			return true
		}
	}
	return false
}

// commonWord reports whether common words, with digits and signs around them, make up the whole text.
func commonWord(s string) bool {
	core := strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	letters := strings.Map(func(r rune) rune {
		if i := strings.IndexRune("@013457$!", r); i >= 0 {
			return rune("aoleastsi"[i])
		}
		return r
	}, core)
	for _, candidate := range []string{s, letters} {
		rest := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return ' '
		}, candidate)
		if words := strings.Fields(rest); len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !madeOfCommonWords(word) }) {
			return true
		}
	}
	return false
}

func madeOfCommonWords(word string) bool {
	if word == "" {
		return true
	}
	for n := len(word); n >= 2; n-- {
		if slices.Contains(commonWords, word[:n]) && madeOfCommonWords(word[n:]) {
			return true
		}
	}
	return false
}

// containsLoginID reports whether a password is little more than the login id.
func containsLoginID(password, loginID string) bool {
	if len(loginID) < 3 {
		return false
	}
	rest := strings.ReplaceAll(strings.ToLower(password), loginID, "")
	return len([]rune(rest)) < 8 && len(rest) < len(password)
}
