package toss

import (
	"errors"
	"fmt"
	"testing"
)

func TestClass(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		op     operation
		status int
		code   string
		want   Class
	}{
		{confirm, 400, "ALREADY_PROCESSED_PAYMENT", AlreadyProcessed},
		{confirm, 400, "PROVIDER_ERROR", RetryLater},
		{confirm, 400, "CARD_PROCESSING_ERROR", RetryLater},
		{confirm, 400, "INVALID_REQUEST", Misconfigured},
		{confirm, 400, "INVALID_API_KEY", Misconfigured},
		{confirm, 401, "UNAUTHORIZED_KEY", Misconfigured},
		{confirm, 403, "INCORRECT_BASIC_AUTH_FORMAT", Misconfigured},
		{confirm, 400, "INVALID_CARD_EXPIRATION", Refused},
		{confirm, 403, "REJECT_CARD_PAYMENT", Refused},
		{confirm, 403, "REJECT_CARD_COMPANY", Refused},
		{confirm, 403, "FDS_ERROR", Refused},
		{confirm, 403, "NOT_AVAILABLE_BANK", Refused}, // the buyer's bank
		{confirm, 404, "NOT_FOUND_PAYMENT", NotFound},
		{confirm, 404, "NOT_FOUND_PAYMENT_SESSION", NotFound},

		{confirm, 409, "IDEMPOTENT_REQUEST_PROCESSING", Unknown},
		{confirm, 429, "", Unknown},
		{confirm, 429, "TOO_MANY_REQUESTS", Unknown},
		{confirm, 500, "FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING", Unknown},
		{confirm, 500, "UNKNOWN_PAYMENT_ERROR", Unknown},
		{confirm, 500, "REJECT_CARD_PAYMENT", Unknown}, // a server error is always Unknown
		{confirm, 502, "", Unknown},
		{confirm, 400, "A_CODE_OF_NEXT_YEAR", Unknown},
		{confirm, 404, "", Unknown},
		{confirm, 0, "", Unknown},
		{confirm, 400, "NOT_CANCELABLE_PAYMENT", Unknown}, // not a code of this call

		{cancel, 400, "ALREADY_CANCELED_PAYMENT", AlreadyCanceled},
		{cancel, 400, "ALREADY_REFUND_PAYMENT", AlreadyCanceled},
		{cancel, 400, "INVALID_REFUND_ACCOUNT_INFO", RefundAccountInvalid},
		{cancel, 400, "INVALID_BANK", RefundAccountInvalid},
		{cancel, 400, "FORBIDDEN_BANK_REFUND_REQUEST", RefundAccountInvalid},
		{cancel, 400, "INVALID_REQUEST", Refused},
		{cancel, 400, "NOT_MATCHES_REFUNDABLE_AMOUNT", Refused},
		{cancel, 403, "NOT_CANCELABLE_AMOUNT", Refused},
		{cancel, 403, "EXCEED_MAX_REFUND_DUE", Refused},
		{cancel, 403, "NOT_AVAILABLE_BANK", RetryLater}, // the bank's hours
		{cancel, 403, "FORBIDDEN_CONSECUTIVE_REQUEST", RetryLater},
		{cancel, 403, "FORBIDDEN_REQUEST", Misconfigured},
		{cancel, 404, "NOT_FOUND_PAYMENT", NotFound},
		{cancel, 500, "FAILED_REFUND_PROCESS", Unknown},
		{cancel, 403, "REJECT_CARD_PAYMENT", Unknown}, // not a code of this call

		{issue, 400, "DUPLICATED_ORDER_ID", AlreadyProcessed},
		{issue, 400, "INVALID_BANK", Refused},
		{issue, 400, "NOT_SUPPORTED_METHOD", Misconfigured},
		{issue, 400, "BELOW_MINIMUM_AMOUNT", Refused},

		{read, 404, "NOT_FOUND_PAYMENT", NotFound},
		{read, 404, "REJECT_CARD_PAYMENT", Unknown},
	} {
		e := &Error{op: tc.op, HTTPStatus: tc.status, Code: tc.code}
		if got := ClassOf(fmt.Errorf("pay: %w", e)); got != tc.want {
			t.Errorf("%s %d %s: %v, want %v", tc.op, tc.status, tc.code, got, tc.want)
		}
	}
	if got := ClassOf(errors.New("anything else")); got != Unknown {
		t.Errorf("a foreign error is %v", got)
	}
}

// TestTablesHoldNoUnknown: only an enumerated refusal may end an attempt, so no table may
// list a code as Unknown, the zero value, by mistake, or contain a server error.
func TestTablesHoldNoUnknown(t *testing.T) {
	t.Parallel()
	for op, table := range codes {
		for code, class := range table {
			if class == Unknown {
				t.Errorf("%s: %s is listed as unknown", op, code)
			}
		}
	}
}
