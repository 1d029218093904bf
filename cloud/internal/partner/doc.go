// Package partner keeps our calendar and those of partner channels alike: what is reserved here is blocked there, and
// what is sold there is put in here. It is the traffic; package channel is the languages, and what a booking does to
// the calendar is a verb of package reserve.
//
//	reservation ──commit──▶ block WANTED ──told──▶ PLACED      cancelled, moved, overdue: UNWANTED ──told──▶ REMOVED
//	partner ──signed event, or its calendar──▶ reserve.TakePartnerBooking ──▶ reservation, or a conflict that is told
//
// Blocks are an outbox: they are written in the transaction of the reservation, a job tells the partner at once, and a
// sweep that compares blocks with reservations makes good what was forgotten.
package partner
