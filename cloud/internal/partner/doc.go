// Package partner synchronises our calendar with partner channels: a reservation here is blocked there, and a booking
// there is imported here. Package channel implements the protocols, and package reserve decides what a booking does to
// the calendar.
//
//	reservation ──commit──▶ block WANTED ──sent──▶ PLACED      cancelled, moved, overdue: UNWANTED ──sent──▶ REMOVED
//	partner ──signed event, or its calendar──▶ reserve.TakePartnerBooking ──▶ reservation, or a reported conflict
//
// Blocks are an outbox: they are written in the transaction of the reservation, a job notifies the partner at once, and
// a sweep compares blocks with reservations and corrects any difference.
package partner
