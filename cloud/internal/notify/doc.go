// Package notify sends messages to customers and staff: AlimTalk (KakaoTalk's
// informational messages, with SMS as the fallback) to phone numbers, and mail to
// e-mail addresses.
//
// The rest of the service passes a [Template] and its variables to a [Sender]; this
// package chooses the provider.
//
//	Message ──▶ Router ──mobile──▶ Solapi ──template refused──▶ Solapi as SMS
//	               │                  │ permanently undeliverable, address known
//	               └──e-mail──▶ Mail ◀┘
//
// A message may contain a door key, so messages are never logged, and errors and
// receipts contain no recipient. Sending is not idempotent at any provider. After an
// error of class [Unknown] the message may have been sent; the caller sends it at
// most once more, so it arrives at least once and at most twice.
package notify
