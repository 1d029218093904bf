package web

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// keyTexts is what the key page says. Texts with %s are filled by the page.
type keyTexts struct {
	Brand, OtherLang, OtherName                             string
	OpensAt, OpenNow, Over, Window, Share                   string
	Offline, NoNetwork, NotSent, CheckNetwork               string
	Front, RoomDoor, Waiting, Opened, Push                  string
	UsePIN, PressStar, Silent, TryAgain, Outside            string
	Call, Map, Calendar, Unknown, UnknownHelp, Reservations string

	room func(no string) string
	date func(time.Time) string
}

func (keyTexts) fill(text string, values ...any) string { return fmt.Sprintf(text, values...) }

var koreanWeekdays = [...]string{"일", "월", "화", "수", "목", "금", "토"}

var keyKorean = keyTexts{
	Brand: "열다", OtherLang: "en", OtherName: "English",
	OpensAt: "%s부터 열 수 있어요.", OpenNow: "지금 열 수 있어요.", Over: "이용 시간이 끝났어요. 찾아 주셔서 고마워요.",
	Window:    "문은 %s부터 %s까지 열 수 있어요.",
	Share:     "이 주소가 열쇠예요. 함께 오는 분에게만 보내 주세요.",
	Offline:   "지금 지점과 연결이 끊겨 문이 자동으로 열리지 않을 수 있어요. 버튼을 누르면 도어록 비밀번호를 알려 드려요.",
	NoNetwork: "인터넷에 연결되어 있지 않아요. 연결되면 문을 열 수 있어요.",
	NotSent:   "요청을 보내지 못했어요", CheckNetwork: "인터넷 연결을 확인하고 다시 눌러 주세요.",
	Front: "현관문 열기", RoomDoor: "%s번 룸 열기", Waiting: "문을 여는 중이에요…",
	Opened: "문이 열렸어요", Push: "지금 밀고 들어오세요.",
	UsePIN: "도어록 비밀번호로 열어 주세요", PressStar: "번호를 누르고 * 를 눌러 주세요.",
	Silent: "문에서 응답이 없어요", TryAgain: "다시 눌러 보시고, 열리지 않으면 전화 주세요. 바로 열어 드릴게요.",
	Outside: "지금은 열 수 없는 시간이에요",
	Call:    "전화하기", Map: "찾아오는 길", Calendar: "캘린더에 추가",
	Unknown: "쓸 수 없는 열쇠예요", UnknownHelp: "예약이 취소되었거나 변경되었을 수 있어요. 주소가 잘리지 않았는지도 확인해 주세요.",
	Reservations: "내 예약 확인하기",
	room:         func(no string) string { return no + "번 룸" },
	date: func(t time.Time) string {
		return fmt.Sprintf("%d월 %d일 (%s)", t.Month(), t.Day(), koreanWeekdays[t.Weekday()])
	},
}

var keyEnglish = keyTexts{
	Brand: "Yeolda", OtherLang: "ko", OtherName: "한국어",
	OpensAt: "Opens at %s.", OpenNow: "You can open the doors now.", Over: "Your time is over. Thank you for coming.",
	Window:    "Doors open from %s until %s.",
	Share:     "This address is the key. Share it only with people who come with you.",
	Offline:   "The branch is offline, so the doors may not open by themselves. Press a button and we show you the keypad code.",
	NoNetwork: "You are offline. You can open the doors when you are connected again.",
	NotSent:   "The request was not sent", CheckNetwork: "Check your connection and press again.",
	Front: "Open the entrance", RoomDoor: "Open room %s", Waiting: "Opening the door…",
	Opened: "The door is open", Push: "Push it now.",
	UsePIN: "Open the door with this code", PressStar: "Enter the digits on the keypad, then press *.",
	Silent: "The door does not answer", TryAgain: "Press again. If it stays closed, call us and we open it for you.",
	Outside: "The doors cannot be opened now",
	Call:    "Call us", Map: "Find the way", Calendar: "Add to calendar",
	Unknown: "This key does not work", UnknownHelp: "The reservation may have been cancelled or changed. Check that the address is complete.",
	Reservations: "See my reservations",
	room:         func(no string) string { return "Room " + no },
	date:         func(t time.Time) string { return t.Format("Mon 2 January") },
}

// keyLanguage picks the language: asked for, chosen before, or the browser's. A choice is remembered.
func (s *site) keyLanguage(w http.ResponseWriter, r *http.Request) (string, keyTexts) {
	lang := r.URL.Query().Get("lang")
	if lang == "ko" || lang == "en" {
		//nolint:gosec // a language is no secret: scripts of the other pages read it, also without TLS in development
		http.SetCookie(w, &http.Cookie{Name: "lang", Value: lang, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode})
	} else if chosen, err := r.Cookie("lang"); err == nil {
		lang = chosen.Value
	} else if accepted := r.Header.Get("Accept-Language"); accepted != "" && !strings.Contains(accepted, "ko") {
		lang = "en"
	}
	if lang == "en" {
		return "en", keyEnglish
	}
	return "ko", keyKorean
}
