package access

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// whyTexts are the sentences of the reasons in Korean and English. {door} is the door, {from} and {to} are the window, {until} is
// the end of a lock-out.
var whyTexts = map[Reason][2]string{
	UnknownKey:    {"등록되지 않은 열쇠예요. 주소가 잘리지 않았는지 확인하거나, 로그인해서 예약을 확인해 주세요.", "This key is not known. Check that the address is complete, or log in to see your reservation."},
	RevokedKey:    {"이 동행 열쇠는 취소됐어요. 예약자에게 새 링크를 받아 주세요.", "This companion link was revoked. Ask the person who made the reservation for a new one."},
	RotatedKey:    {"열쇠가 새것으로 바뀌었어요. 가장 최근에 받은 메시지의 링크를 열어 주세요.", "This key was replaced. Open the link in your newest message."},
	WrongBranch:   {"이 열쇠는 다른 지점의 열쇠예요. 예약한 지점을 확인해 주세요.", "This key belongs to another branch. Check the branch of your reservation."},
	Refunded:      {"예약이 취소되고 환불까지 끝나서 문을 열 수 없어요.", "The reservation was cancelled and refunded, so the doors do not open."},
	Canceled:      {"취소된 예약이라서 문을 열 수 없어요.", "The reservation was cancelled, so the doors do not open."},
	NotPaid:       {"결제가 확인되지 않아서 아직 문을 열 수 없어요.", "The payment is not confirmed yet, so the doors do not open."},
	Moved:         {"예약 시간이 바뀌었어요. {day} {from}부터 {to}까지 열 수 있어요.", "Your reservation has moved. The doors open from {from} to {to} on {day}."},
	TooEarly:      {"아직 이용 시간이 아니에요. {day} {from}부터 열 수 있어요.", "It is too early. The doors open at {from} on {day}."},
	TooLate:       {"문을 열 수 있는 시간이 지났어요. {day} {to}까지였어요.", "It is too late. The doors opened until {to} on {day}."},
	RateLimited:   {"버튼을 너무 여러 번 눌렀어요. 잠시 뒤에 다시 눌러 주세요.", "There were too many attempts. Press again in a moment."},
	LockedOut:     {"{door} 도어록에 틀린 번호가 여러 번 눌려서 {until}까지 번호를 받지 않아요. 열쇠 페이지의 버튼으로 열거나, 그 뒤에 번호를 다시 눌러 주세요. 급하면 전화해 주세요.", "The keypad at {door} takes no number until {until}, because several wrong ones were entered. Open with the button on the key page, enter the number after that, or call us."},
	BranchOffline: {"지금 지점 연결이 끊겨 있어요. {door}은 도어록 번호로 열어 주세요.", "The branch is offline. Open {door} with the keypad."},
	DoorFailed:    {"방금 {door}이 열리지 않은 것을 확인했어요. 다시 눌러 보고, 안 되면 도어록 번호로 열거나 전화해 주세요.", "We have seen that {door} did not open. Press again; if it stays locked, use the keypad or call us."},
	Openable:      {"지금 {door}을 열 수 있어요.", "You can open {door} now."},
}

// The sentences name no way that does not exist: the button at a branch that is offline, and a keypad at a door without one.
var (
	lockedOutOffline = [2]string{"{door} 도어록에 틀린 번호가 여러 번 눌려서 {until}까지 번호를 받지 않고, 지금 지점 연결도 끊겨 있어요. 그 뒤에 번호를 다시 눌러 주세요. 급하면 전화해 주세요.", "The keypad at {door} takes no number until {until}, because several wrong ones were entered, and the branch is offline. Enter the number after that, or call us."}
	offlineNoKeypad  = [2]string{"지금 지점 연결이 끊겨 있어서 {door}을 열 수 없어요. 전화해 주세요.", "The branch is offline, so {door} does not open now. Please call us."}
	failedNoKeypad   = [2]string{"방금 {door}이 열리지 않은 것을 확인했어요. 다시 눌러 보고, 안 되면 전화해 주세요.", "We have seen that {door} did not open. Press again; if it stays locked, call us."}
)

func (d Diagnosis) texts() [2]string {
	keypad := slices.ContainsFunc(d.Next, func(s Step) bool { return s.Action == UseCode || s.Action == UsePIN })
	switch {
	case d.Code == LockedOut && d.offline:
		return lockedOutOffline
	case d.Code == BranchOffline && !keypad:
		return offlineNoKeypad
	case d.Code == DoorFailed && !keypad:
		return failedNoKeypad
	}
	return whyTexts[d.Code]
}

// Message returns the sentence of the diagnosis in a language: ko or en. Times are local to the branch.
func (d Diagnosis) Message(language string) string {
	text, door, day := d.texts()[0], "현관문", "1월 2일"
	if d.Kind == Room {
		door = strconv.Itoa(d.RoomNo) + "번 룸 문"
	}
	if language == "en" {
		text, door, day = d.texts()[1], "the entrance", "2 January"
		if d.Kind == Room {
			door = "room " + strconv.Itoa(d.RoomNo)
		}
	}
	from, to, until := d.Window.Start, d.Window.End, d.Until.Add(time.Minute-1).Truncate(time.Minute) // not before the end
	if zone := d.Branch.Zone; zone != nil {
		from, to, until = from.In(zone), to.In(zone), until.In(zone)
	}
	return strings.NewReplacer("{door}", door, "{day}", from.Format(day), "{from}", from.Format("15:04"), "{to}", to.Format("15:04"),
		"{until}", until.Format("15:04")).Replace(text)
}
