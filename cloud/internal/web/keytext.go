package web

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// keyTexts holds the texts of the key page. %s is replaced by keyView, {door} by the name of the pressed door.
type keyTexts struct {
	Brand, OtherLang, OtherName                             string
	OpensAt, OpenNow, Leaving, Over, Window, Share, Again   string
	Guests, GuestsHelp, GuestName, GuestAdd                 string
	GuestShare, GuestRevoke, GuestCopied, GuestKey          string
	GuestSure, GuestKeep                                    string
	BranchOffline, PhoneOffline, Unreachable                string
	Front, FrontName, RoomDoor, RoomName                    string
	Extended, Refunded                                      string
	Relocked, Reload                                        string
	Extend, ExtendOption, ExtendNow, ChangeFailed           string // {time} and {price} are replaced by the page
	EndNow, EndAsk, EndSure, EndKeep                        string
	Climate                                                 string
	RemoteWords                                             string // of remote controls in English, by the words of agents, in JSON
	Codes, CodesHelp, CodeLeft                              string // {door} and {s} are replaced by the page
	PIN, PINHelp, PINNotReady                               string
	Arrival                                                 string
	Call, Map, Calendar, Unknown, UnknownHelp, Reservations string

	panels map[string]panelText
	room   func(no string) string
	date   func(time.Time) string
}

// panelText holds the headline and the advice of one outcome.
type panelText struct{ title, text string }

func (keyTexts) fill(text string, values ...any) string { return fmt.Sprintf(text, values...) }

// until returns the time of an end, with its date if the clock alone could mean an earlier day.
func (t keyTexts) until(from, to time.Time) string {
	clock := to.Format("15:04")
	if to.Sub(from) < 24*time.Hour {
		return clock
	}
	return t.date(to) + " " + clock
}

// window describes when the doors of a key can be opened.
func (t keyTexts) window(key Key) string {
	from, to := key.From.In(key.Zone), key.To.In(key.Zone)
	return t.fill(t.Window, from.Format("15:04"), t.until(from, to))
}

// compensation describes what the guest received for a door that did not open; empty: nothing.
func (t keyTexts) compensation(key Key) string {
	switch {
	case key.RefundedWon > 0: // after an extension, too
		return t.fill(t.Refunded, grouped(key.RefundedWon))
	case key.ExtendedMinutes > 0:
		return t.fill(t.Extended, key.ExtendedMinutes)
	}
	return ""
}

// headline inserts the name of a door and capitalizes the result.
func headline(title, door string) string {
	runes := []rune(strings.ReplaceAll(title, "{door}", door))
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}

var koreanWeekdays = [...]string{"일", "월", "화", "수", "목", "금", "토"}

var keyKorean = keyTexts{
	OtherLang: "en", OtherName: "English",
	OpensAt: "%s부터 열 수 있어요.", OpenNow: "지금 열 수 있어요.", Leaving: "문은 더 열 수 없어요. 퇴실까지",
	Over:     "이용 시간이 끝났어요. 찾아 주셔서 고마워요.",
	Window:   "문은 %s부터 %s까지 열 수 있어요.",
	Extended: "문이 열리지 않은 것을 확인해 이용 시간을 %d분 늘려 드렸어요.",
	Refunded: "문이 열리지 않은 것을 확인해 %s원을 환불해 드려요.",
	Share:    "이 주소는 본인만 사용해 주세요. 함께 오는 분에게는 동행 링크를 만들어 보내 주세요.",
	Guests:   "함께 오는 분", GuestsHelp: "동행 링크로 같은 문을 열 수 있어요. 언제든 취소할 수 있어요.",
	GuestName: "이름이나 별명", GuestAdd: "동행 링크 만들기", GuestShare: "보내기", GuestRevoke: "취소하기", GuestCopied: "링크를 복사했어요.",
	GuestSure: "링크를 취소할까요?", GuestKeep: "그대로 두기",
	GuestKey:      "예약한 분이 만든 동행 링크예요. 다른 사람에게 보내지 마세요.",
	BranchOffline: "지금 지점 연결이 끊겨 문이 저절로 열리지 않을 수 있어요. 버튼을 누르면 도어록 비밀번호를 알려 드려요.",
	PhoneOffline:  "인터넷에 연결되어 있지 않아요. 와이파이나 데이터를 켜 주세요.",
	Unreachable:   "지금 서버에 연결되지 않고 있어요. 계속 다시 시도할게요.",
	Front:         "현관문 열기", FrontName: "현관문", RoomDoor: "%s번 룸 열기", RoomName: "%s번 룸 문",
	Relocked: "다시 잠겼으면 버튼을 한 번 더 눌러 주세요.", Reload: "새 예약 정보 보기",
	Extend: "더 머물고 싶다면", ExtendOption: "{time}까지 · {price}원", ExtendNow: "연장하기",
	ChangeFailed: "지금은 변경하지 못했어요. 잠시 후 다시 시도해 주세요.",
	EndNow:       "지금 이용 종료하기", EndAsk: "10분 단위로 가장 가까운 시각에 이용이 끝나고, 남은 시간은 환불되지 않아요. 종료할까요?", EndSure: "네, 종료할게요", EndKeep: "계속 이용할게요",
	Climate: "룸 온도",
	PIN:     "키패드 비밀번호", PINHelp: "키패드에 번호를 누르고 # 을 눌러 주세요. 지점이나 휴대폰의 인터넷이 끊겨도 현관과 룸이 열려요.",
	PINNotReady: "아직 지점에 전달되지 않은 비밀번호예요. 위의 버튼으로 열어 주세요.",
	Codes:       "일회용 번호로 열기", CodesHelp: "어느 문의 번호를 받을까요? 키패드에 번호와 # 을 누르거나, 스캐너에 QR 코드를 보여 주세요.",
	CodeLeft: "{door} 번호예요. {s}초 안에 한 번 쓸 수 있어요.",
	Arrival:  "들어오는 길",
	Call:     "전화하기", Map: "찾아오는 길", Calendar: "캘린더에 추가", Again: "다시 예약하기",
	Unknown: "쓸 수 없는 열쇠예요", UnknownHelp: "예약이 취소되었거나 변경되었을 수 있어요. 주소가 잘리지 않았는지도 확인해 주세요.",
	Reservations: "내 예약 확인하기",
	panels: map[string]panelText{
		"waiting":     {"{door}을 여는 중이에요…", ""},
		"opened":      {"{door}이 열렸어요", "%s초 안에 밀어 주세요."},
		"pin":         {"{door}은 이 비밀번호로 열어 주세요", "번호를 누르고 * 를 눌러 주세요."},
		"code":        {"{door}은 이 일회용 번호로 열어 주세요", "키패드에 번호를 누르고 # 을 눌러 주세요. 1분 안에 한 번만 쓸 수 있어요."},
		"over":        {"번호가 만료됐어요", ""},
		"failed":      {"{door}이 열리지 않았어요", "한 번 더 눌러 보고, 그래도 안 열리면 전화해 주세요."},
		"unknown":     {"{door}이 열렸는지 확인하지 못했어요", "문을 한번 밀어 보세요. 닫혀 있으면 다시 눌러 주세요."},
		"unreachable": {"서버에 연결하지 못했어요", "문을 한번 밀어 보고, 닫혀 있으면 다시 눌러 주세요."},
		"offline":     {"인터넷에 연결되어 있지 않아요", "와이파이나 데이터를 켜고 다시 눌러 주세요."},
		"server":      {"저희 서버에 문제가 생겼어요", "한 번 더 눌러 보고, 그래도 안 되면 전화해 주세요."},
		"busy":        {"너무 여러 번 눌렀어요", "잠시 뒤에 다시 눌러 주세요."},
		"moved":       {"예약 내용이 바뀌었어요", "지금 예약은 위와 같아요. 확인하고 다시 눌러 주세요."},
		"stale":       {"예약 내용이 바뀌었어요", "이 화면의 룸이나 시간은 더 이상 맞지 않아요."},
		"outside":     {"지금은 열 수 없는 시간이에요", ""},
	},
	room: func(no string) string { return no + "번 룸" },
	date: func(t time.Time) string {
		return fmt.Sprintf("%d월 %d일 (%s)", t.Month(), t.Day(), koreanWeekdays[t.Weekday()])
	},
}

var keyEnglish = keyTexts{
	OtherLang: "ko", OtherName: "한국어",
	OpensAt: "The doors open at %s.", OpenNow: "You can open the doors now.", Leaving: "The doors no longer open. Your stay:",
	Over:     "Your stay has ended. Thank you for coming.",
	Window:   "You can open the doors from %s to %s.",
	Extended: "We saw that the door did not open, and extended your stay by %d minutes.",
	Refunded: "We saw that the door did not open, and refund %s won.",
	Share:    "Please keep this link to yourself. For people who come with you, create companion links and share those.",
	Guests:   "People who come with you", GuestsHelp: "A companion link opens the same doors. You can revoke it at any time.",
	GuestName: "Name or nickname", GuestAdd: "Create a companion link", GuestShare: "Share", GuestRevoke: "Revoke", GuestCopied: "The link is copied.",
	GuestSure: "Revoke this link?", GuestKeep: "Keep it",
	GuestKey:      "This is a companion link, created by the person who made the reservation. Please do not share it.",
	BranchOffline: "The branch is offline, so the doors may not open automatically. Press a button to get the keypad code.",
	PhoneOffline:  "Your phone is offline. Turn on Wi-Fi or mobile data.",
	Unreachable:   "We cannot reach our server right now. We keep trying.",
	Front:         "Open the entrance", FrontName: "the entrance", RoomDoor: "Open room %s", RoomName: "room %s",
	Relocked: "If it has locked again, press the button once more.", Reload: "Show the new reservation",
	Extend: "Stay longer", ExtendOption: "until {time} · {price} won", ExtendNow: "Extend",
	ChangeFailed: "This did not work. Try again in a moment.",
	EndNow:       "End my stay now", EndAsk: "Your stay ends at the next ten-minute mark. The remaining time is not refunded. End it?", EndSure: "Yes, end it", EndKeep: "No, keep my stay",
	RemoteWords: `{"전원":"Power","끄기":"off","켜기":"on","자동":"Auto","냉방":"Cool","난방":"Heat","제습":"Dry","송풍":"Fan","최약":"lowest","약":"low","중":"medium","강":"high","최강":"highest","정숙":"quiet","터보":"turbo","회전":"swing","고정":"fixed","1단":"level 1","2단":"level 2","3단":"level 3","4단":"level 4","5단":"level 5"}`,
	Climate:     "Room temperature",
	PIN:         "Your PIN", PINHelp: "Enter it on a keypad, then press #. It opens the front door and your room, without internet, too.",
	PINNotReady: "The branch does not have this PIN yet. Please use the buttons above.",
	Codes:       "Open with a one-time code", CodesHelp: "For which door? Enter the digits and # on the keypad, or show the QR code to the scanner.",
	CodeLeft: "A code for {door}. It works once, within {s} seconds.",
	Arrival:  "How to get in",
	Call:     "Call us", Map: "Directions", Calendar: "Add to calendar", Again: "Book again",
	Unknown: "This key does not work", UnknownHelp: "The reservation may have been cancelled or changed. Check that the address is complete.",
	Reservations: "My reservations",
	panels: map[string]panelText{
		"waiting":     {"Opening {door}…", ""},
		"opened":      {"{door} is open", "Push the door within %s seconds."},
		"pin":         {"Open {door} with this code", "Enter the digits on the keypad, then press *."},
		"code":        {"Open {door} with this one-time code", "Enter the digits on the keypad, then press #. The code works once, within a minute."},
		"over":        {"This code has expired", ""},
		"failed":      {"{door} did not open", "Press again. If it stays locked, call us."},
		"unknown":     {"We could not confirm that {door} opened", "Try pushing the door. If it is locked, press again."},
		"unreachable": {"We could not reach our server", "Try pushing the door. If it is locked, press again."},
		"offline":     {"Your phone is offline", "Turn on Wi-Fi or mobile data and press again."},
		"server":      {"Something went wrong on our side", "Press again. If it does not help, call us."},
		"busy":        {"Too many attempts", "Wait a moment and press again."},
		"moved":       {"Your reservation has changed", "The current details are shown above. Check them and press again."},
		"stale":       {"Your reservation has changed", "The room or time on this page is no longer correct."},
		"outside":     {"The doors cannot be opened now", ""},
	},
	room: func(no string) string { return "Room " + no },
	date: func(t time.Time) string { return t.Format("Mon 2 January") },
}

// keyLanguage returns the language of the request and its texts.
func (s *site) keyLanguage(w http.ResponseWriter, r *http.Request) (string, keyTexts) {
	lang := languageOf(w, r)
	ko, en := s.Company(r.Context()).Names()
	if lang == "en" {
		texts := keyEnglish
		texts.Brand = en
		return lang, texts
	}
	texts := keyKorean
	texts.Brand = ko
	return lang, texts
}

// languageOf returns the language of the query, otherwise that of the cookie. Without either it returns English if the browser
// does not accept Korean. It stores the language of the query in the cookie.
func languageOf(w http.ResponseWriter, r *http.Request) string {
	lang := r.URL.Query().Get("lang")
	if lang == "ko" || lang == "en" {
		//nolint:gosec // not a secret: scripts of the other pages read it, also without TLS in development
		http.SetCookie(w, &http.Cookie{Name: "lang", Value: lang, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode})
	} else if chosen, err := r.Cookie("lang"); err == nil {
		lang = chosen.Value
	} else if accepted := r.Header.Get("Accept-Language"); accepted != "" && !strings.Contains(accepted, "ko") {
		lang = "en"
	}
	if lang == "en" {
		return lang
	}
	return "ko"
}
