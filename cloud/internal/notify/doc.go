// Package notify tells customers and staff what happened: AlimTalk (KakaoTalk's
// informational messages, with SMS as the fallback) to phone numbers, mail to
// addresses.
//
// The rest of the service names a [Template] and its variables and hands them to
// a [Sender]; which outside system carries the message is decided here.
//
//	Message ──▶ Router ──mobile──▶ Solapi ──template refused──▶ Solapi as SMS
//	               │                  │ permanently undeliverable, address known
//	               └──e-mail──▶ Mail ◀┘
//
// A message may carry a door key, so messages are never logged, and errors and
// receipts name no recipient. Sending is not idempotent anywhere out there. An
// error of class [Unknown] means the message may have gone out: the caller sends it
// once more at most (at least once, at most twice).
package notify
