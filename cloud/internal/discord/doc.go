// Package discord is the chat bot for staff: the interactions endpoint, its commands, and the requests to Discord. It
// handles the transport only; a [Backend] executes the commands.
//
//	Discord ──POST /discord/interactions──▶ signature ─▶ decode ─▶ user's branches ─▶ Backend
//	   ▲                                     401 if wrong                              │
//	   ├── answer in the same response, if there is one within 2 seconds ◀─────────────┤
//	   └── "thinking…", then PATCH @original when there is one ◀───────────────────────┘
//
// Discord drops an interaction that has no answer after 3 seconds. Every answer is ephemeral: only the user who sent the
// command sees it.
package discord
