package toss

// operation is the call that returned an error. The same code has different meanings for
// a confirmation and for a cancellation.
type operation string

const (
	everyCall    operation = ""
	confirm      operation = "confirm"
	cancel       operation = "cancel"
	issue        operation = "issue virtual account"
	read         operation = "read payment"
	transactions operation = "list transactions"
	settlements  operation = "list settlements"

	issueReceipt  operation = "issue cash receipt"
	cancelReceipt operation = "cancel cash receipt"
	listReceipts  operation = "list cash receipts"
)

// Codes of errors that this package returns without sending a request.
const (
	codeInvalidRequest       = "INVALID_REQUEST"
	codeInvalidRefundAccount = "INVALID_REFUND_ACCOUNT_NUMBER"
	codeNotFoundPayment      = "NOT_FOUND_PAYMENT"
)

// codes holds the provider's published error tables. A code that is not listed is
// Unknown, because only an enumerated refusal may end an attempt.
var codes = map[operation]map[string]Class{
	everyCall: {
		codeNotFoundPayment:         NotFound,
		"NOT_FOUND_PAYMENT_SESSION": NotFound,

		"PROVIDER_ERROR": RetryLater,

		codeInvalidRequest:             Misconfigured,
		"INVALID_API_KEY":              Misconfigured,
		"NOT_FOUND_TERMINAL_ID":        Misconfigured,
		"INVALID_AUTHORIZE_AUTH":       Misconfigured,
		"INVALID_UNREGISTERED_SUBMALL": Misconfigured,
		"NOT_REGISTERED_BUSINESS":      Misconfigured,
		"UNAPPROVED_ORDER_ID":          Misconfigured,
		"INVALID_IDEMPOTENCY_KEY":      Misconfigured,
		"UNAUTHORIZED_KEY":             Misconfigured,
		"FORBIDDEN_REQUEST":            Misconfigured,
		"INCORRECT_BASIC_AUTH_FORMAT":  Misconfigured,
	},
	confirm: refusals(map[string]Class{
		"ALREADY_PROCESSED_PAYMENT": AlreadyProcessed,
		"CARD_PROCESSING_ERROR":     RetryLater,
	}),
	issue: refusals(map[string]Class{
		"ALREADY_PROCESSED_PAYMENT": AlreadyProcessed,
		"DUPLICATED_ORDER_ID":       AlreadyProcessed,
		"NOT_SUPPORTED_METHOD":      Misconfigured, // not in the contract with the provider
		"INVALID_BANK":              Refused,
		"INVALID_EMAIL":             Refused,
	}),
	cancel: {
		"ALREADY_CANCELED_PAYMENT": AlreadyCanceled,
		"ALREADY_REFUND_PAYMENT":   AlreadyCanceled,

		"INVALID_REFUND_ACCOUNT_INFO":   RefundAccountInvalid,
		codeInvalidRefundAccount:        RefundAccountInvalid,
		"INVALID_BANK":                  RefundAccountInvalid,
		"FORBIDDEN_BANK_REFUND_REQUEST": RefundAccountInvalid,

		// The provider also uses INVALID_REQUEST if the payment's state does not fit the
		// request (a deposit has arrived, so a refund account is required).
		codeInvalidRequest:                           Refused,
		"EXCEED_CANCEL_AMOUNT_DISCOUNT_AMOUNT":       Refused,
		"NOT_MATCHES_REFUNDABLE_AMOUNT":              Refused,
		"REFUND_REJECTED":                            Refused,
		"NOT_CANCELABLE_AMOUNT":                      Refused,
		"NOT_CANCELABLE_PAYMENT":                     Refused,
		"NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER":    Refused,
		"EXCEED_MAX_REFUND_DUE":                      Refused,
		"EXCEED_CANCEL_LIMIT":                        Refused,
		"NOT_ALLOWED_PARTIAL_REFUND":                 Refused,
		"NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT": Refused,

		"FORBIDDEN_CONSECUTIVE_REQUEST": RetryLater,
		"NOT_AVAILABLE_BANK":            RetryLater, // outside the bank's hours
	},
}

// refusals adds the codes of a declined card or other payment method.
func refusals(more map[string]Class) map[string]Class {
	for _, code := range []string{
		"EXCEED_MAX_CARD_INSTALLMENT_PLAN",
		"NOT_ALLOWED_POINT_USE",
		"INVALID_REJECT_CARD",
		"BELOW_MINIMUM_AMOUNT",
		"INVALID_CARD_EXPIRATION",
		"INVALID_STOPPED_CARD",
		"EXCEED_MAX_DAILY_PAYMENT_COUNT",
		"NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT",
		"INVALID_CARD_INSTALLMENT_PLAN",
		"NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN",
		"EXCEED_MAX_PAYMENT_AMOUNT",
		"INVALID_CARD_LOST_OR_STOLEN",
		"RESTRICTED_TRANSFER_ACCOUNT",
		"INVALID_CARD_NUMBER",
		"EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT",
		"EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT",
		"EXCEED_MAX_AMOUNT",
		"EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT",
		"INVALID_ACCOUNT_INFO_RE_REGISTER",
		"NOT_AVAILABLE_PAYMENT",
		"REJECT_ACCOUNT_PAYMENT",
		"REJECT_CARD_PAYMENT",
		"REJECT_CARD_COMPANY",
		"REJECT_TOSSPAY_INVALID_ACCOUNT",
		"EXCEED_MAX_AUTH_COUNT",
		"EXCEED_MAX_ONE_DAY_AMOUNT",
		"NOT_AVAILABLE_BANK",
		"INVALID_PASSWORD",
		"FDS_ERROR",
	} {
		more[code] = Refused
	}
	return more
}
