package contract_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/contract"
)

const (
	ok      = `{"status":"success","errorType":null,"errorCode":null,"message":null,"data":null}`
	expired = `{"status":"error","errorType":"ResourceTimeOutException","errorCode":null,"message":"예약 세션이 만료되었습니다.","data":null}`
	opened  = "id: 0d6f7a7e-6c1e-4c6e-9f3b-4e0b8f7f2c11\nevent: door-result\ndata: {\"status\":\"SUCCESS\",\"device\":\"front\",\"failoverKey\":null}\n\n"
)

// TestCheck shows that the checker rejects violations: a checker that accepts everything would make all contract tests
// worthless.
func TestCheck(t *testing.T) {
	t.Parallel()
	payment := `{"amount":1,"name":"a","mobileNum":"01012345678"}`
	registered := `{"status":"success","errorType":null,"errorCode":null,"message":null,"data":{"orderId":"ord-123456"}}`
	for name, c := range map[string]struct {
		method, path, sent string
		status             int
		got                string
		wrong              string // part of the expected error; empty: no error
	}{
		"valid":                      {"POST", "/payment", payment, 200, registered, ""},
		"bad request, rejected":      {"POST", "/payment", `{"amount":"x"}`, 401, expired, ""},
		"bad request, accepted":      {"POST", "/payment", `{"amount":"x"}`, 200, registered, "violates the description"},
		"name of 50 letters":         {"POST", "/payment", strings.Replace(payment, `"a"`, `"`+strings.Repeat("가", 50)+`"`, 1), 200, registered, ""},
		"name of 51 letters, taken":  {"POST", "/payment", strings.Replace(payment, `"a"`, `"`+strings.Repeat("가", 51)+`"`, 1), 200, registered, "maxLength"},
		"envelope without errorCode": {"POST", "/payment", payment, 200, strings.Replace(registered, `"errorCode":null,`, "", 1), "errorCode"},
		"undescribed field":          {"POST", "/payment", payment, 200, strings.Replace(registered, `"orderId"`, `"more":1,"orderId"`, 1), "more"},
		"undescribed status":         {"POST", "/payment", payment, 404, expired, "status is not supported"},
		"another error's type":       {"POST", "/payment", payment, 401, strings.Replace(expired, "ResourceTimeOutException", "AuthenticationError", 1), "must be"},
		"another message":            {"POST", "/payment", payment, 401, strings.Replace(expired, "만료", "취소", 1), "must be"},
		"missing query":              {"GET", "/reservations?branch=gangnam", "", 200, ok, "base_date"},
		"missing cookie":             {"POST", "/reservation", `{"branch":"gangnam","room":1,"startDateTime":"202611251500","endDateTime":"202611251600"}`, 200, ok, "Set-Cookie"},
		"literal before name":        {"GET", "/admin/door/v2/unlock/subscribe?requestId=1", "", 200, opened, ""},
		"event":                      {"GET", "/door/v2/unlock/subscribe?requestId=1&key=2", "", 200, opened, ""},
		"event with another status":  {"GET", "/door/v2/unlock/subscribe?requestId=1&key=2", "", 200, strings.Replace(opened, "SUCCESS", "OPEN", 1), "status"},
		"PIN although it opened":     {"GET", "/door/v2/unlock/subscribe?requestId=1&key=2", "", 200, strings.Replace(opened, `"failoverKey":null`, `"failoverKey":"1"`, 1), "failoverKey"},
		"unknown path, no session":   {"GET", "/nowhere", "", 401, strings.Replace(expired, "ResourceTimeOutException", "AuthenticationError", 1), ""},
		"unknown path, accepted":     {"GET", "/nowhere", "", 200, ok, "undescribed operation"},
		"unknown path, no envelope":  {"GET", "/nowhere", "", 404, `{"error":"x"}`, "missing propert"},
	} {
		request := httptest.NewRequest(c.method, "http://yeolda.example"+c.path, nil)
		request.Header.Set("Content-Type", "application/json")
		answer := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
		if strings.HasPrefix(c.got, "id:") {
			answer.Header.Set("Content-Type", "text/event-stream")
		}
		err := contract.Check(contract.Exchange{Request: request, Sent: []byte(c.sent), Answer: answer, Got: []byte(c.got)})
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: got %v, want an error containing %q", name, err, c.wrong)
		}
	}
}

func TestUncovered(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "http://yeolda.example/my-reservations", nil)
	if !slices.Contains(contract.Uncovered(), "myReservations 401") {
		t.Fatal("operation counted as covered before any exchange")
	}
	_ = contract.Check(contract.Exchange{Request: request, Answer: &http.Response{StatusCode: http.StatusUnauthorized}})
	if slices.Contains(contract.Uncovered(), "myReservations 401") {
		t.Error("operation not counted as covered after an exchange")
	}
}

// TestDocument checks that every operation has an access level, a unique id and the responses that any operation can
// give.
func TestDocument(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, o := range contract.Operations() {
		name := o.Method + " " + o.Path
		if o.OperationID == "" || ids[o.OperationID] {
			t.Errorf("%s: operationId %q is missing or duplicate", name, o.OperationID)
		}
		ids[o.OperationID] = true
		statuses := []string{"500"}
		switch o.Access() {
		case "public":
		case "session":
			statuses = append(statuses, "401")
		case "customer", "look", "change", "hq":
			statuses = append(statuses, "401", "403")
		default:
			t.Errorf("%s: unknown x-access %q", name, o.Access())
		}
		if administrators := o.Access() == "look" || o.Access() == "change"; len(o.Roles()) > 0 && !administrators {
			t.Errorf("%s: x-roles %v with x-access %q, which admits none of them", name, o.Roles(), o.Access())
		}
		if o.RequestBody != nil && o.Extensions["x-envelope"] == nil {
			statuses = append(statuses, "400", "413")
		}
		for _, status := range statuses {
			if o.Responses.Value(status) == nil {
				t.Errorf("%s: response %s is not described", name, status)
			}
		}
	}
}
