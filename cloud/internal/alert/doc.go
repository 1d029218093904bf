// Package alert notifies staff of conditions that need them: which there are, whom they concern, and which contacts receive them.
//
// An alert is a row of the table alert, at most one open row per kind, branch and subject. Rows that report an event open it
// in their own transaction, by triggers or by the statement that writes them; absences (a branch without its agent, a
// message that was not sent) are found by [Service.Sweep]. The sweep also queues the messages: one to each contact when an
// alert begins, one when it has been over for a while. An alert that returns before that is the same incident.
package alert
