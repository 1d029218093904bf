// Package chatops implements the chat commands for staff with the same services that the HTTP interface uses.
package chatops

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/discord"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Backend implements discord.Backend. Every field is required.
type Backend struct {
	DB      *postgres.DB
	Access  *access.Service
	Climate *climate.Service
}

var _ discord.Backend = (*Backend)(nil)

// Branches lists all branches.
func (b *Backend) Branches(ctx context.Context) ([]discord.Branch, error) {
	branches, err := b.DB.Branches(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]discord.Branch, 0, len(branches))
	for _, branch := range branches {
		list = append(list, discord.Branch{Code: branch.Code, Name: branch.NameKo})
	}
	return list, nil
}

// Reservations lists the branch's reservations of today. Extensions are part of the stay that they extend.
func (b *Backend) Reservations(ctx context.Context, code string) ([]discord.Reservation, error) {
	branch, err := b.DB.Branch(ctx, code)
	if err != nil {
		return nil, refusal(err)
	}
	date := booking.DateOf(b.DB.Now(), branch.Zone)
	busy, err := b.busy(ctx, branch, booking.Interval{Start: date.At(0, branch.Zone), End: date.AddDays(1).At(0, branch.Zone)})
	if err != nil {
		return nil, err
	}
	list := make([]discord.Reservation, 0, len(busy))
	for _, r := range busy {
		list = append(list, discord.Reservation{
			Room: r.RoomNo, Start: r.Start.In(branch.Zone), End: r.Stay().End.In(branch.Zone), Name: r.Name, Status: statusText(r),
		})
	}
	return list, nil
}

// roomsAhead is how far ahead Rooms looks for the next reservation.
const roomsAhead = 24 * time.Hour

// Rooms returns the current state of each room: in use or free, and until when.
func (b *Backend) Rooms(ctx context.Context, code string) ([]discord.Room, error) {
	branch, err := b.DB.Branch(ctx, code)
	if err != nil {
		return nil, refusal(err)
	}
	now := b.DB.Now()
	busy, err := b.busy(ctx, branch, booking.Interval{Start: now, End: now.Add(roomsAhead)})
	if err != nil {
		return nil, err
	}
	rooms := make([]discord.Room, 0, len(branch.Rooms))
	for _, room := range branch.Rooms {
		state := discord.Room{No: room.No, Enabled: room.Enabled}
		for _, r := range busy {
			switch stay := r.Stay(); {
			case r.RoomNo != room.No || !now.Before(stay.End):
			case stay.Contains(now):
				state.InUse, state.Until = true, stay.End.In(branch.Zone)
			case state.Until.IsZero():
				state.Until = r.Start.In(branch.Zone)
			}
		}
		rooms = append(rooms, state)
	}
	return rooms, nil
}

// busy returns the stays within a span of time, by room and time, without quarantines: no guest comes to those. An extension that
// is paid is in the times of its stay.
func (b *Backend) busy(ctx context.Context, branch booking.Branch, span booking.Interval) ([]booking.Reservation, error) {
	list, err := postgres.StaysDuring(ctx, b.DB.Pool, branch.ID, span)
	if err != nil {
		return nil, err
	}
	now := b.DB.Now()
	return slices.DeleteFunc(list, func(r booking.Reservation) bool { return !r.Occupies(now) || r.QuarantineOf != 0 }), nil
}

func statusText(r booking.Reservation) string {
	switch r.BookingStatus() {
	case booking.StatusPaid:
		return "예약 확정"
	case booking.StatusWaitingForDeposit:
		return "입금 대기"
	}
	return "예약 진행 중"
}

// Unlock opens a door and waits for the result.
func (b *Backend) Unlock(ctx context.Context, r discord.UnlockRequest) (bool, error) {
	kind := access.Front
	if r.Room != 0 {
		kind = access.Room
	}
	actor := access.Actor{Name: r.By, RequestID: r.InteractionID, Once: "discord " + r.InteractionID}
	id, err := b.Access.RequestAs(ctx, actor, r.Branch, kind, r.Room)
	if err != nil {
		return false, refusal(err)
	}
	return b.Access.Opened(ctx, id) // PINs are not disclosed in a chat
}

// Readings returns the current sensor readings.
func (b *Backend) Readings(ctx context.Context, code string) ([]discord.Reading, error) {
	readings, err := b.Climate.Sensors(ctx, code)
	if err != nil {
		return nil, refusal(err)
	}
	list := make([]discord.Reading, 0, len(readings))
	for _, r := range readings {
		list = append(list, discord.Reading{Location: r.Location, Temperature: r.Celsius, Humidity: r.RelativeHumidity})
	}
	return list, nil
}

// nearby is how far from now a reservation may lie for Why.
const nearby = 3 * time.Hour

// Why diagnoses the reservation of a room that is running or lies closest to now, cancelled ones included.
func (b *Backend) Why(ctx context.Context, code string, room int) (string, error) {
	branch, err := b.DB.Branch(ctx, code)
	if err != nil {
		return "", refusal(err)
	}
	if _, ok := branch.Room(room); !ok {
		return "", refusal(access.ErrUnknownRoom)
	}
	id, err := postgres.ReservationNear(ctx, b.DB.Pool, branch.ID, room, b.DB.Now(), nearby)
	if errors.Is(err, postgres.ErrNoReservation) {
		return "", discord.Refusal("지금 이 룸에 가까운 예약이 없습니다.")
	}
	if err != nil {
		return "", err
	}
	d, err := b.Access.WhyReservation(ctx, id, access.Room)
	return d.Message("ko"), err
}

// refusal returns errors that the user can correct as a Refusal.
func refusal(err error) error {
	switch {
	case errors.Is(err, postgres.ErrNoBranch):
		return discord.Refusal("그런 지점이 없습니다.")
	case errors.Is(err, access.ErrUnknownRoom):
		return discord.Refusal("그런 룸이 없습니다.")
	case errors.Is(err, access.ErrRepeated):
		return discord.Refusal("이미 처리한 요청입니다.")
	case errors.Is(err, climate.ErrDeviceUnavailable):
		return discord.Refusal("지점 장치가 응답하지 않습니다.")
	}
	return err
}
