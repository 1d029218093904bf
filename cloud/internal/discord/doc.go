// Package discord is the chat bot for staff: the interactions endpoint, its few
// commands, and the calls back to Discord. It is transport only; what a command does
// is the [Backend]'s business.
//
//	Discord ──POST /discord/interactions──▶ signature ─▶ decode ─▶ user's branches ─▶ Backend
//	   ▲                                     401 if wrong                              │
//	   ├── answer in the same response, if there is one within 2 seconds ◀─────────────┤
//	   └── "thinking…", then PATCH @original when there is one ◀───────────────────────┘
//
// Discord drops an interaction that has no answer after 3 seconds. Every answer is
// ephemeral: only the person who asked sees it.
package discord
