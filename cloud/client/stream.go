package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// OpenFrontAsStaff opens the front doors of a branch with a token of the scope doors.
func OpenFrontAsStaff(ctx context.Context, api *API, branch string) (DoorOutcome, error) {
	accepted, err := api.AdminUnlockFrontWithResponse(ctx, branch, "front")
	if err != nil {
		return DoorOutcome{}, err
	}
	if accepted.JSON200 == nil {
		return DoorOutcome{}, errForeign
	}
	return awaitAsStaff(ctx, api, accepted.JSON200.Data.RequestID)
}

// OpenRoomAsStaff opens the door of a room with a token of the scope doors.
func OpenRoomAsStaff(ctx context.Context, api *API, branch, room string) (DoorOutcome, error) {
	accepted, err := api.AdminUnlockRoomWithResponse(ctx, branch, "room", room)
	if err != nil {
		return DoorOutcome{}, err
	}
	if accepted.JSON200 == nil {
		return DoorOutcome{}, errForeign
	}
	return awaitAsStaff(ctx, api, accepted.JSON200.Data.RequestID)
}

func awaitAsStaff(ctx context.Context, api *API, request string) (DoorOutcome, error) {
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

const (
	// followInterval is how often Follow asks for new events while there are none.
	followInterval = time.Second
	// maxFollowInterval bounds the time between its questions during an outage.
	maxFollowInterval = 30 * time.Second
)

// Follow calls do with each event after a place, in order, until ctx ends or do returns an error. The place "0" is the oldest
// event that is kept; to continue later, the caller stores the id of the last event. Follow waits for the end of an outage, except
// before the first answer. It returns every other error of the service, such as a token that was revoked.
func Follow(ctx context.Context, api *API, after string, do func(Event) error) error {
	limit := 1000
	wait, begun := followInterval, false
	for {
		page, err := api.ListEventsWithResponse(ctx, &ListEventsParams{After: &after, Limit: &limit})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && begun && temporary(err):
			if err := pause(ctx, max(wait, retryAfter(err))); err != nil {
				return err
			}
			wait = min(2*wait, maxFollowInterval)
			continue
		case err != nil:
			return err
		case page.JSON200 == nil || page.JSON200.Data.Next == "": // without the place, the next question would begin elsewhere
			return errForeign
		}
		wait, begun = followInterval, true
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
		if err := pause(ctx, followInterval); err != nil {
			return err
		}
	}
}

// temporary reports whether a request failed for a reason that ends by itself: the network, a restart, or a limit.
func temporary(err error) bool {
	if rejected, answered := errors.AsType[*Error](err); answered {
		return rejected.HTTP >= http.StatusInternalServerError || rejected.HTTP == http.StatusTooManyRequests
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF)
}

// retryAfter returns how long the service asks to wait, or 0.
func retryAfter(err error) time.Duration {
	if rejected, answered := errors.AsType[*Error](err); answered {
		return rejected.RetryAfter
	}
	return 0
}

// pause waits, or returns the error of ctx when it ends earlier.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
