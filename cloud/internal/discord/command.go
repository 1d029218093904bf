package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Names of the commands and their options, as staff type them.
const (
	commandReservations = "예약"
	commandRooms        = "룸상태"
	commandUnlock       = "문열기"
	commandReadings     = "온도"
	commandWhy          = "왜"

	optionBranch = "지점"
	optionRoom   = "룸"
)

// Command is a command in Discord's registration format.
type Command struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        int             `json:"type"`
	Options     []CommandOption `json:"options,omitempty"`
	// Permissions "0" hides the command from all but the server's administrators until they allow others. [Users] is the
	// actual authorization.
	Permissions string `json:"default_member_permissions"`
	Contexts    []int  `json:"contexts"`
}

// CommandOption is an option of a command.
type CommandOption struct {
	Name         string `json:"name"`
	Description  string `json:"description"`
	Type         int    `json:"type"`
	Required     bool   `json:"required"`
	Autocomplete bool   `json:"autocomplete,omitempty"`
	MinValue     *int   `json:"min_value,omitempty"`
	MaxValue     *int   `json:"max_value,omitempty"`
}

const (
	chatInput     = 1
	stringOption  = 3
	integerOption = 4
	inGuild       = 0
	maxRoom       = 9999
)

// Commands lists the commands of the bot, for [Client.Register].
func Commands() []Command {
	branch := CommandOption{Name: optionBranch, Description: "지점 코드", Type: stringOption, Required: true, Autocomplete: true}
	first, last := 1, maxRoom
	room := CommandOption{Name: optionRoom, Description: "룸 번호 (비우면 현관)", Type: integerOption, MinValue: &first, MaxValue: &last}
	mustRoom := CommandOption{Name: optionRoom, Description: "룸 번호", Type: integerOption, Required: true, MinValue: &first, MaxValue: &last}
	command := func(name, description string, options ...CommandOption) Command {
		return Command{Name: name, Description: description, Type: chatInput, Options: options, Permissions: "0", Contexts: []int{inGuild}}
	}
	return []Command{
		command(commandReservations, "오늘의 예약을 봅니다", branch),
		command(commandRooms, "룸이 지금 비어 있는지 봅니다", branch),
		command(commandUnlock, "현관 또는 룸의 문을 엽니다", branch, room),
		command(commandWhy, "룸의 예약으로 문이 왜 안 열리는지 봅니다", branch, mustRoom),
		command(commandReadings, "온도와 습도를 봅니다", branch),
	}
}

// run executes a command of an authorized user and returns the text of the answer.
func (h *Handler) run(ctx context.Context, i interaction, branch string) (string, error) {
	switch i.Data.Name {
	case commandReservations:
		list, err := h.Backend.Reservations(ctx, branch)
		return reservationsText(branch, list, h.Now()), err
	case commandRooms:
		list, err := h.Backend.Rooms(ctx, branch)
		return roomsText(branch, list, h.Now()), err
	case commandReadings:
		list, err := h.Backend.Readings(ctx, branch)
		return readingsText(branch, list), err
	case commandWhy:
		room, err := i.room()
		if err != nil {
			return "", err
		}
		if room == 0 {
			return "", Refusal("룸 번호를 알려 주세요.")
		}
		sentence, err := h.Backend.Why(ctx, branch, room)
		return fmt.Sprintf("**%s** %d번 룸: %s", branch, room, sentence), err
	case commandUnlock:
		room, err := i.room()
		if err != nil {
			return "", err
		}
		opened, err := h.Backend.Unlock(ctx, UnlockRequest{
			InteractionID: i.ID, By: "discord:" + i.userID(), Branch: branch, Room: room,
		})
		return unlockText(branch, room, opened), err
	}
	return "", Refusal("알 수 없는 명령입니다.")
}

// room returns the room option, or 0 if it is absent.
func (i interaction) room() (int, error) {
	for _, o := range i.Data.Options {
		if o.Name != optionRoom {
			continue
		}
		var n int
		if err := json.Unmarshal(o.Value, &n); err != nil || n < 1 || n > maxRoom {
			return 0, Refusal("룸 번호가 올바르지 않습니다.")
		}
		return n, nil
	}
	return 0, nil
}

// clock writes a time of day, with the day if it is not that of now.
func clock(at, now time.Time) string {
	day := at.Format(time.DateOnly)
	text := at.Format("15:04")
	switch now = now.In(at.Location()); day {
	case now.Format(time.DateOnly):
		return text
	case now.AddDate(0, 0, 1).Format(time.DateOnly):
		return "내일 " + text
	case now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "어제 " + text
	}
	return day + " " + text
}

func reservationsText(branch string, list []Reservation, now time.Time) string {
	if len(list) == 0 {
		return fmt.Sprintf("**%s** 오늘 예약이 없습니다.", branch)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** 오늘 예약 %d건", branch, len(list))
	for _, r := range list {
		fmt.Fprintf(&b, "\n`%s~%s` %d번 %s (%s)", clock(r.Start, now), clock(r.End, now), r.Room, plain(r.Name), r.Status)
	}
	return b.String()
}

func roomsText(branch string, list []Room, now time.Time) string {
	if len(list) == 0 {
		return fmt.Sprintf("**%s** 룸이 없습니다.", branch)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** 룸 상태", branch)
	for _, r := range list {
		state := "비어 있음"
		switch {
		case r.InUse:
			state = "이용 중, " + clock(r.Until, now) + "까지"
		case !r.Enabled:
			state = "사용 안 함"
		case !r.Until.IsZero():
			state += ", 다음 예약 " + clock(r.Until, now)
		}
		fmt.Fprintf(&b, "\n%d번: %s", r.No, state)
	}
	return b.String()
}

func readingsText(branch string, list []Reading) string {
	if len(list) == 0 {
		return fmt.Sprintf("**%s** 측정값이 없습니다.", branch)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** 온도와 습도", branch)
	for _, r := range list {
		fmt.Fprintf(&b, "\n%s: %.1f°C, %.0f%%", plain(r.Location), r.Temperature, r.Humidity)
	}
	return b.String()
}

// unlockText never contains the failover PIN, because Discord stores messages.
func unlockText(branch string, room int, opened bool) string {
	door := "현관"
	if room > 0 {
		door = fmt.Sprintf("%d번 룸", room)
	}
	if opened {
		return fmt.Sprintf("**%s** %s 문을 열었습니다.", branch, door)
	}
	return fmt.Sprintf("**%s** %s 문을 열지 못했습니다. 비상 번호는 관리자 화면에서 확인해 주세요.", branch, door)
}

// plain removes Discord's markup from text that a guest entered.
func plain(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("`*_~|<>@#[]()\\", r)
	}), " ")
}

// failureText returns the text that the user is shown for an error.
func failureText(err error) string {
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		return string(refusal)
	case errors.Is(err, context.DeadlineExceeded):
		return "시간이 초과되었습니다. 결과를 확인할 수 없습니다."
	}
	return "일시적인 오류가 발생했습니다."
}
