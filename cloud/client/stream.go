package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errForeign is returned for a success that is not the documented one, such as a proxy's 204.
var errForeign = errors.New("yeolda: the answer has no data")

// DoorOutcome is the result of a request to open a door.
type DoorOutcome struct {
	Status       string  `json:"status"`       // SUCCESS or FAILED
	Device       *string `json:"device"`       // the door
	FailoverKey  *string `json:"failoverKey"`  // what to type at the keypad of the door instead
	FailoverKind string  `json:"failoverKind"` // of failoverKey: code, which opens once, or pin
}

// OpenDoor presses the button of a door and waits for the result, about eight seconds at most.
func OpenDoor(ctx context.Context, api *API, press UnlockRequest) (DoorOutcome, error) {
	accepted, err := api.UnlockDoorWithResponse(ctx, press)
	if err != nil {
		return DoorOutcome{}, err
	}
	if accepted.JSON200 == nil {
		return DoorOutcome{}, errForeign
	}
	result, err := api.AwaitDoorWithResponse(ctx, &AwaitDoorParams{RequestID: accepted.JSON200.Data.RequestID, Key: press.Key})
	if err != nil {
		return DoorOutcome{}, err
	}
	return outcome(result.Body)
}

// OpenDoorAsStaff opens the door of a room, or the front doors if room is empty, with a token of the scope doors.
func OpenDoorAsStaff(ctx context.Context, api *API, branch, room string) (DoorOutcome, error) {
	var request string
	if room == "" {
		accepted, err := api.AdminUnlockFrontWithResponse(ctx, branch, "front")
		if err != nil {
			return DoorOutcome{}, err
		}
		if accepted.JSON200 == nil {
			return DoorOutcome{}, errForeign
		}
		request = accepted.JSON200.Data.RequestID
	} else {
		accepted, err := api.AdminUnlockRoomWithResponse(ctx, branch, "room", room)
		if err != nil {
			return DoorOutcome{}, err
		}
		if accepted.JSON200 == nil {
			return DoorOutcome{}, errForeign
		}
		request = accepted.JSON200.Data.RequestID
	}
	result, err := api.AdminAwaitDoorWithResponse(ctx, &AdminAwaitDoorParams{RequestID: request})
	if err != nil {
		return DoorOutcome{}, err
	}
	return outcome(result.Body)
}

// outcome reads the only event of a stream.
func outcome(stream []byte) (o DoorOutcome, err error) {
	_, data, found := strings.Cut(string(stream), "\ndata: ")
	if !found {
		return o, errors.New("yeolda: the stream has no event")
	}
	if err := json.Unmarshal([]byte(data), &o); err != nil {
		return o, fmt.Errorf("yeolda: result of a door: %w", err)
	}
	return o, nil
}

// followInterval is how often Follow asks for new events while there are none.
const followInterval = time.Second

// Follow calls do with each event after a place, in order, until ctx ends or do returns an error. The place "0" is the oldest
// event that is kept; to continue later, the caller stores the id of the last event.
func Follow(ctx context.Context, api *API, after string, do func(Event) error) error {
	limit := 1000
	for {
		page, err := api.ListEventsWithResponse(ctx, &ListEventsParams{After: &after, Limit: &limit})
		if err != nil {
			return err
		}
		if page.JSON200 == nil || page.JSON200.Data.Next == "" { // without the place, the next question would begin elsewhere
			return errForeign
		}
		for _, e := range page.JSON200.Data.Events {
			if err := do(e); err != nil {
				return err
			}
		}
		waiting := after == page.JSON200.Data.Next
		after = page.JSON200.Data.Next
		if !waiting {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followInterval):
		}
	}
}
