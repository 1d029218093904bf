package alert

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of alert.
type Kind string

// The kinds.
const (
	BranchOffline   Kind = "branch-offline"
	DoorFailing     Kind = "door-failing" // two presses of one stay failed
	DoorForced      Kind = "door-forced"
	KeypadOutdated  Kind = "keypad-outdated" // the agent is connected, but its keypads lack the time or new PINs
	DoorHeld        Kind = "door-held"
	PINExposed      Kind = "pin-exposed" // a guest has seen a PIN that does not change
	ReaderLockout   Kind = "reader-lockout"
	KeyUndelivered  Kind = "key-undelivered"
	RefundFailed    Kind = "refund-failed"
	Discrepancy     Kind = "discrepancy"
	PaymentUnclear  Kind = "payment-unclear"
	SensorSilent    Kind = "sensor-silent"
	SensorThreshold Kind = "sensor-threshold"
	SelfTest        Kind = "self-test"
	Clock           Kind = "clock"
	Certificate     Kind = "certificate"
	ReconcileLate   Kind = "reconciliation-late"
	ServiceCheck    Kind = "service-check" // a check of the installation fails
	AgentTakeover   Kind = "agent-takeover"
	WebhookDisabled Kind = "webhook-disabled" // deliveries to a receiver failed for a day
	NoArrival       Kind = "no-arrival"       // the guest of a stay has not arrived; of low urgency
)

// kinds are the kinds in the order of their severity: how long a guest or money can wait.
var kinds = []struct {
	kind Kind
	what string // in Korean; %s is the subject
}{
	{BranchOffline, "지점 연결이 끊겼어요"},
	{DoorFailing, "%s 문이 열리지 않아요"},
	{KeyUndelivered, "%s의 열쇠 메시지가 전달되지 않았어요"},
	{DoorForced, "%s 문이 강제로 열렸어요"},
	{AgentTakeover, "지점 장치의 인증 정보로 다른 기기가 접속했어요 (%s)"},
	{ReaderLockout, "%s 키패드가 잠겼어요. 틀린 번호가 여러 번 입력됐어요"},
	{KeypadOutdated, "키패드에 새 비밀번호가 전달되지 않아요"},
	{DoorHeld, "%s 문이 오래 열려 있어요"},
	{PaymentUnclear, "%s의 결제 결과를 확인할 수 없어요"},
	{RefundFailed, "%s의 환불이 실패했어요"},
	{Discrepancy, "결제·출입 기록이 맞지 않아요 (%s)"},
	{PINExposed, "%s 문의 비밀번호가 공개됐어요. 비밀번호를 바꿔 주세요"},
	{SelfTest, "장치 점검에 실패했어요 (%s)"},
	{SensorThreshold, "%s 온도가 정상 범위를 벗어났어요"},
	{SensorSilent, "%s 센서가 응답하지 않거나 같은 값만 보내요"},
	{Clock, "지점 장치의 시계가 맞지 않아요"},
	{Certificate, "지점 연결용 인증서가 곧 만료돼요"},
	{ServiceCheck, "서비스 점검에서 문제를 찾았어요 (%s)"},
	{ReconcileLate, "결제사와의 대사가 늦어지고 있어요"},
	{WebhookDisabled, "웹훅으로 하루 동안 이벤트를 보내지 못해 중지했어요 (%s)"},
	{NoArrival, "%s의 고객이 아직 도착하지 않았어요"},
}

// Valid reports whether k is one of the kinds.
func (k Kind) Valid() bool { return k.Severity() < len(kinds) }

// Severity is the place of a kind among all, 0 for the most severe one.
func (k Kind) Severity() int {
	for i, known := range kinds {
		if known.kind == k {
			return i
		}
	}
	return len(kinds)
}

// Kinds returns all kinds, the most severe first.
func Kinds() []Kind {
	list := make([]Kind, len(kinds))
	for i, known := range kinds {
		list[i] = known.kind
	}
	return list
}

// sentence describes an alert in Korean. lost is the number of branches that are offline; 0: not known.
func sentence(kind Kind, branch, subject string, lost int) string {
	switch {
	case kind == BranchOffline && branch == "" && lost == 0:
		return "여러 지점의 연결이 끊겼어요"
	case kind == BranchOffline && branch == "":
		return fmt.Sprintf("지점 %d곳의 연결이 끊겼어요", lost)
	case kind == KeypadOutdated && subject == "clock":
		return "키패드가 현재 시각을 몰라서 모든 번호를 거절해요"
	case strings.HasPrefix(subject, "calendar:"):
		return "외부 예약 채널의 캘린더를 읽을 수 없어요. 지점 설정에서 확인해 주세요"
	}
	i := slices.IndexFunc(kinds, func(known struct {
		kind Kind
		what string
	}) bool {
		return known.kind == kind
	})
	if i < 0 {
		return string(kind) + " " + subject
	}
	if !strings.Contains(kinds[i].what, "%s") {
		return kinds[i].what
	}
	return fmt.Sprintf(kinds[i].what, subjectName(subject))
}

// subjectName is a subject in Korean: a door, a reservation, or the text itself.
func subjectName(subject string) string {
	if id, ok := strings.CutPrefix(subject, "reservation:"); ok {
		return "예약 " + id
	}
	if room, ok := strings.CutPrefix(subject, "room_"); ok {
		return room + "번 룸"
	}
	if door, ok := strings.CutPrefix(subject, "front"); ok {
		return strings.TrimSpace("입구 " + strings.TrimPrefix(door, "_"))
	}
	return subject
}
