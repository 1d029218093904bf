package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	yeolda "github.com/yeolda/yeolda/cloud/client"
)

// An operation sends one request with the generated yeolda.
type operation func(exchange) (status int, body []byte, err error)

// An exchange is a request as a test writes it.
type exchange struct {
	ctx  context.Context
	api  *yeolda.API
	path []string // values of the path's parameters
	url.Values
	sent []byte // nil: no body
}

// operations lists what the tests ask the service for. A request that no generated client can send is in handwritten.
var operations = map[string]operation{
	"POST /reservation":          in((*yeolda.API).HoldWithResponse),
	"DELETE /reservation":        none((*yeolda.API).ReleaseWithResponse),
	"POST /payment":              in((*yeolda.API).RegisterPaymentWithResponse),
	"POST /payment/confirm":      in((*yeolda.API).ConfirmPaymentWithResponse),
	"POST /payment/cancel":       in((*yeolda.API).CancelPaymentWithResponse),
	"GET /my-reservations":       none((*yeolda.API).MyReservationsWithResponse),
	"POST /account/code":         in((*yeolda.API).SendLoginCodeWithResponse),
	"POST /account/login":        in((*yeolda.API).LoginCustomerWithResponse),
	"POST /door/v2/unlock":       in((*yeolda.API).UnlockDoorWithResponse),
	"GET /v2/me":                 none((*yeolda.API).WhoAmIWithResponse),
	"GET /v2/hold":               none((*yeolda.API).ShowHoldWithResponse),
	"GET /v2/keys/{}":            at((*yeolda.API).ShowKeyWithResponse),
	"POST /v2/keys/{}/extension": inAt((*yeolda.API).ExtendStayWithResponse),
	"GET /v2/keys/{}/why": func(x exchange) (int, []byte, error) {
		return got(x.api.WhyKeyWithResponse(x.ctx, x.path[0], &yeolda.WhyKeyParams{Branch: new(x.Get("branch")), Door: new(x.Get("door"))}))
	},
	"POST /v2/agent/enroll":   in((*yeolda.API).ExchangeTokenWithResponse),
	"POST /admin/login":       in((*yeolda.API).LoginAdminWithResponse),
	"POST /admin/payment":     in((*yeolda.API).RegisterWithoutPaymentWithResponse),
	"POST /admin/reservation": in((*yeolda.API).AdminHoldWithResponse),
	"GET /door/v2/unlock/subscribe": func(x exchange) (int, []byte, error) {
		return got(x.api.AwaitDoorWithResponse(x.ctx, &yeolda.AwaitDoorParams{RequestID: x.Get("requestId"), Key: x.Get("key")}))
	},
	"GET /admin/door/v2/unlock/subscribe": func(x exchange) (int, []byte, error) {
		return got(x.api.AdminAwaitDoorWithResponse(x.ctx, &yeolda.AdminAwaitDoorParams{RequestID: x.Get("requestId")}))
	},
	"POST /admin/door/v2/unlock/{}/{}": func(x exchange) (int, []byte, error) {
		return got(x.api.AdminUnlockFrontWithResponse(x.ctx, x.path[0], x.path[1]))
	},
	"POST /admin/door/v2/unlock/{}/{}/{}": func(x exchange) (int, []byte, error) {
		return got(x.api.AdminUnlockRoomWithResponse(x.ctx, x.path[0], x.path[1], x.path[2]))
	},
	"GET /v2/branches/{}/calendar": func(x exchange) (int, []byte, error) {
		return got(x.api.CalendarWithResponse(x.ctx, x.path[0], &yeolda.CalendarParams{YearMonth: x.Get("yearMonth")}))
	},
	"GET /v2/branches/{}/reservations": func(x exchange) (int, []byte, error) {
		var params yeolda.SlotsV2Params
		if err := params.Date.UnmarshalText([]byte(x.Get("date"))); err != nil {
			return 0, nil, err
		}
		return got(x.api.SlotsV2WithResponse(x.ctx, x.path[0], &params))
	},
	"DELETE /admin/reservation/{}": func(x exchange) (int, []byte, error) {
		body, err := typed[yeolda.AdminCancelJSONRequestBody](x.sent)
		if err != nil {
			return 0, nil, err
		}
		return got(x.api.AdminCancelWithResponse(x.ctx, x.path[0], &yeolda.AdminCancelParams{BookingStatus: x.Get("bookingStatus")}, body))
	},
	"PUT /admin/reservation/{}":     inAt((*yeolda.API).MoveReservationWithResponse),
	"PATCH /admin/machines/{}/{}":   inAtTwo((*yeolda.API).SwitchRoomWithResponse),
	"GET /admin/airconditioner/{}":  at((*yeolda.API).AirConditionerOptionsWithResponse),
	"POST /v2/admin/reconciliation": none((*yeolda.API).ReconcileWithResponse),
	"POST /v2/admin/branches":       in((*yeolda.API).AddBranchWithResponse),
	"GET /v2/admin/company":         none((*yeolda.API).ShowCompanyWithResponse),
	"GET /v2/admin/money-desk": func(x exchange) (int, []byte, error) {
		return got(x.api.ShowMoneyDeskWithResponse(x.ctx, nil))
	},
	"GET /v2/admin/alerts": func(x exchange) (int, []byte, error) {
		params := yeolda.ListAlertsParams{State: new(x.Get("state"))}
		if x.Has("branch") {
			params.Branch = new(x.Get("branch"))
		}
		return got(x.api.ListAlertsWithResponse(x.ctx, &params))
	},
	"GET /v2/admin/reservations": func(x exchange) (int, []byte, error) {
		return got(x.api.SearchReservationsWithResponse(x.ctx, &yeolda.SearchReservationsParams{Query: x.Get("query")}))
	},
	"GET /v2/admin/reservations/{}":             at((*yeolda.API).ReservationRecordWithResponse),
	"POST /v2/admin/reservations/{}/check":      at((*yeolda.API).CheckPaymentWithResponse),
	"PUT /v2/admin/reservations/{}/guest/block": inAt((*yeolda.API).BlockGuestWithResponse),
	"POST /v2/admin/reservations/{}/refunds": func(x exchange) (int, []byte, error) {
		body, err := typed[yeolda.RefundJSONRequestBody](x.sent)
		if err != nil {
			return 0, nil, err
		}
		return got(x.api.RefundWithResponse(x.ctx, x.path[0], nil, body))
	},
	"POST /v2/admin/personal-data/export": in((*yeolda.API).ExportPersonWithResponse),
	"GET /v2/admin/branches/{}/timeline": func(x exchange) (int, []byte, error) {
		var params yeolda.TimelineParams
		if err := params.Date.UnmarshalText([]byte(x.Get("date"))); err != nil {
			return 0, nil, err
		}
		return got(x.api.TimelineWithResponse(x.ctx, x.path[0], &params))
	},
	"GET /v2/admin/branches/{}/payments": func(x exchange) (int, []byte, error) {
		return got(x.api.ListPaymentsWithResponse(x.ctx, x.path[0], &yeolda.ListPaymentsParams{YearMonth: x.Get("yearMonth")}))
	},
	"GET /v2/admin/branches/{}/doors":            at((*yeolda.API).ListDoorsWithResponse),
	"GET /v2/admin/branches/{}/settings":         at((*yeolda.API).ShowSettingsWithResponse),
	"PUT /v2/admin/branches/{}/settings":         inAt((*yeolda.API).ChangeSettingsWithResponse),
	"POST /v2/admin/branches/{}/rooms/{}/photos": inAtTwo((*yeolda.API).AddPhotoWithResponse),
	"PUT /v2/admin/branches/{}/rooms/{}":         inAtTwo((*yeolda.API).ChangeRoomWithResponse),
	"PUT /v2/admin/branches/{}/rooms/{}/prices":  inAtTwo((*yeolda.API).ChangePricesWithResponse),
	"PUT /v2/admin/branches/{}/rooms/{}/profile": inAtTwo((*yeolda.API).DescribeRoomWithResponse),
	"POST /v2/admin/branches/{}/arrival":         inAt((*yeolda.API).AddStepWithResponse),
	"GET /v2/admin/branches/{}/rooms/{}/prices": func(x exchange) (int, []byte, error) {
		return got(x.api.ShowPricesWithResponse(x.ctx, x.path[0], x.path[1]))
	},
	"GET /v2/admin/branches/{}/climate":        at((*yeolda.API).ShowClimateWithResponse),
	"GET /v2/admin/branches/{}/climate-policy": at((*yeolda.API).ShowClimatePolicyWithResponse),
	"PUT /v2/admin/branches/{}/climate-policy": inAt((*yeolda.API).ChangeClimatePolicyWithResponse),
	"PUT /v2/admin/agents/{}/settings":         inAt((*yeolda.API).ChangeAgentSettingsWithResponse),
}

// handwritten lists the requests that are not in the clients: a person's own account and tokens, and a forged call of the provider.
var handwritten = map[string]bool{
	"POST /admin/logout": true, "POST /v2/admin/agents/rollout": true, "POST /v2/admin/tokens": true, "DELETE /v2/admin/tokens/{}": true, "POST /v2/admin/administrators": true, "GET /v2/admin/administrators": true, "PUT /v2/admin/administrators/{}": true, "PUT /v2/admin/company": true, "POST /virtualaccount/webhook": true,
}

func none[R any](call func(*yeolda.API, context.Context, ...yeolda.RequestEditorFn) (*R, error)) operation {
	return func(x exchange) (int, []byte, error) { return got(call(x.api, x.ctx)) }
}

func at[R any](call func(*yeolda.API, context.Context, string, ...yeolda.RequestEditorFn) (*R, error)) operation {
	return func(x exchange) (int, []byte, error) { return got(call(x.api, x.ctx, x.path[0])) }
}

func in[B, R any](call func(*yeolda.API, context.Context, B, ...yeolda.RequestEditorFn) (*R, error)) operation {
	return func(x exchange) (int, []byte, error) {
		body, err := typed[B](x.sent)
		if err != nil {
			return 0, nil, err
		}
		return got(call(x.api, x.ctx, body))
	}
}

func inAt[B, R any](call func(*yeolda.API, context.Context, string, B, ...yeolda.RequestEditorFn) (*R, error)) operation {
	return func(x exchange) (int, []byte, error) {
		return in(func(api *yeolda.API, ctx context.Context, body B, _ ...yeolda.RequestEditorFn) (*R, error) {
			return call(api, ctx, x.path[0], body)
		})(x)
	}
}

func inAtTwo[B, R any](call func(*yeolda.API, context.Context, string, string, B, ...yeolda.RequestEditorFn) (*R, error)) operation {
	return func(x exchange) (int, []byte, error) {
		return in(func(api *yeolda.API, ctx context.Context, body B, _ ...yeolda.RequestEditorFn) (*R, error) {
			return call(api, ctx, x.path[0], x.path[1], body)
		})(x)
	}
}

// typed decodes a test's body into the generated type. A field that the type lacks is not sent.
func typed[B any](sent []byte) (body B, err error) {
	if sent == nil {
		return body, nil
	}
	return body, json.Unmarshal(sent, &body)
}

// got returns the status and the body of a generated answer.
func got[R any](answer *R, err error) (int, []byte, error) {
	if err != nil {
		return 0, nil, err
	}
	value := reflect.ValueOf(answer).Elem()
	response, _ := value.FieldByName("HTTPResponse").Interface().(*http.Response)
	return response.StatusCode, value.FieldByName("Body").Bytes(), nil
}

// request sends a test's request to the API at an address with the generated yeolda.
func request(ctx context.Context, doer *http.Client, address, method, path string, sent []byte) (status int, body []byte, err error) {
	api, err := yeolda.NewClientWithResponses(address, yeolda.WithHTTPClient(doer))
	if err != nil {
		return 0, nil, err
	}
	target, err := url.Parse(path)
	if err != nil {
		return 0, nil, err
	}
	for name := range handwritten {
		if _, ok := match(name, method+" "+target.EscapedPath()); ok {
			return requestByHand(ctx, doer, address, method, path, sent)
		}
	}
	for name, send := range operations {
		if values, ok := match(name, method+" "+target.EscapedPath()); ok {
			return send(exchange{ctx, api, values, target.Query(), sent})
		}
	}
	return 0, nil, fmt.Errorf("%s %s is not in operations_test.go", method, path)
}

// match compares an address with a name of operations and returns the values of its parameters.
func match(name, address string) (values []string, ok bool) {
	want, have := strings.Split(name, "/"), strings.Split(address, "/")
	if len(want) != len(have) {
		return nil, false
	}
	for i := range want {
		switch {
		case want[i] == "{}":
			value, err := url.PathUnescape(have[i])
			if err != nil {
				return nil, false
			}
			values = append(values, value)
		case want[i] != have[i]:
			return nil, false
		}
	}
	return values, true
}

// requestByHand sends a request without the generated yeolda.
func requestByHand(ctx context.Context, doer *http.Client, address, method, path string, sent []byte) (status int, body []byte, err error) {
	by, err := http.NewRequestWithContext(ctx, method, address+path, bytes.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	response, err := doer.Do(by)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
