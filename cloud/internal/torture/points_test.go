package torture

import (
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

// point is a crash point: what is done to the service, the expected result, and the time limit, which starts when no fault
// is active any more. After each point the books are audited.
type point struct {
	name     string
	what     string
	within   time.Duration
	env      []string
	replicas int
	slow     bool // left out by `go test`
	do       func(r *rig) error
}

var points = append(append(purchases, changes()...), receiptPoints()...)

var purchases = []point{
	{name: "C1", what: "killed before the attempt is committed", within: 10 * time.Second, do: crashThenConfirm("confirm.beginning", "HOLD")},
	{name: "C2", what: "killed with the attempt committed and nothing sent", within: 3 * time.Minute, do: crashThenWait("confirm.begun")},
	{name: "C3", what: "the request is lost before the provider", within: time.Minute, do: onProviderLine(faultproxy.Rule{On: "/v1/payments/confirm", Lose: true})},
	{name: "C4", what: "the money is taken, the answer lost", within: time.Minute, do: onProviderLine(faultproxy.Rule{On: "/v1/payments/confirm"})},
	{name: "C5", what: "killed with the answer read", within: 3 * time.Minute, do: crashThenWait("confirm.answered")},
	{name: "C6", what: "COMMIT is sent and its answer lost", within: 3 * time.Minute, do: loseCommit},
	{name: "C7", what: "killed before the customer is answered", within: 10 * time.Second, do: crashThenConfirm("confirm.finished", "DONE")},
	{name: "C8", what: "killed with the message sent and not marked", within: 3 * time.Minute, do: crashThenWait("message.sent")},
	{name: "C9", what: "50 confirmations of one order over 2 replicas", within: 5 * time.Second, replicas: 2, do: confirmFifty},
	{name: "C10", what: "the hold's time passes under confirmation", within: time.Minute, env: []string{"YEOLDA_CUSTOMER_HOLD_TTL=" + shortHold.String()}, do: outliveHold},
	{name: "C11", what: "the hold has expired before: slot free, slot taken", within: time.Minute, env: []string{"YEOLDA_CUSTOMER_HOLD_TTL=" + shortHold.String()}, do: confirmExpired},
	{name: "C12", what: "the provider babbles", within: 3 * time.Minute, do: babble},
	{name: "C13", what: "the provider confirms another amount", within: time.Minute, do: anotherAmount},
	{name: "C14", what: "the callback overtakes our record", within: 2 * time.Minute, do: overtakingCallback},
	{name: "C15", what: "20 callbacks at once, DONE and CANCELED mixed", within: 10 * time.Second, do: mixedCallbacks},
	{name: "C16", what: "PostgreSQL away right after the charge", within: 3 * time.Minute, do: databaseAway},
	{name: "C17", what: "the provider away", within: 5 * time.Minute, do: providerAway},
	{name: "C18", what: "kill -9 in a worker in the middle of its question", within: 3 * time.Minute, do: killWorker},
	{name: "C19", what: "killed at each step of a cancellation", within: 3 * time.Minute, do: crashInCancel},
	{name: "C20", what: "customer, administrator and sweep cancel together", within: 5 * time.Second, replicas: 2, do: cancelTogether},
	{name: "C21", what: "the bank sends a refund back", within: 5 * time.Minute, do: failedRefund},
	{name: "C22", what: "the deposit arrives while its account is closed", within: 3 * time.Minute, env: []string{"YEOLDA_DEPOSIT_DUE=2s"}, do: depositAtDeadline},
	{name: "C23", what: "the deposit arrives days late, the slot is resold", within: 5 * time.Minute, do: lateDeposit},
	{name: "C24", what: "the bank takes a deposit back", within: 2 * time.Minute, do: reversal},
	{name: "C25", what: "the account is due and the provider away", within: 5 * time.Minute, env: []string{"YEOLDA_DEPOSIT_DUE=1s"}, do: overdueWithoutProvider},
	{name: "C26", what: "rolling restart with 50 confirmations in flight", within: 30 * time.Second, replicas: 2, do: rollingRestart},
	{name: "C27", what: "PostgreSQL takes no writes", within: 3 * time.Minute, do: readOnly},
	{name: "C28", what: "the guest leaves, killed at each step of the refund", within: 3 * time.Minute, do: leaveAndCrash},
	{name: "C29", what: "a deposit is taken back while the service is down", within: 3 * time.Minute, do: reversalWhileDown},
	{name: "C36", what: "killed while a refund outside is recorded", within: 3 * time.Minute, do: crashInOutside},
	{name: "C37", what: "killed at the key message again and again", within: 3 * time.Minute, slow: true, do: crashAtKeyMessage},
	{name: "C38", what: "a hold is committed and the answer lost", within: 10 * time.Second, do: loseHold},
}

var card, account = sandbox.MethodCard, sandbox.MethodVirtualAccount
