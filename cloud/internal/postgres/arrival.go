package postgres

// reported is the condition that the agent of inventory i is connected, and has had a minute to report its journal and its events. now is
// an expression.
func reported(now string) string {
	return `i.online and i.presence_since <= ` + now + `::timestamptz - interval '1 minute'`
}

// notArrived is the predicate that the guest of a stay r has not arrived at the time $2, although the doors would have shown it: the
// room has a lock, and the agent is connected and has had a minute to report its journal. Every attempt counts as an arrival,
// also one that failed: the guest is at the door. Staff who opened the room may have let the guest in. The times of door
// requests are those of the database's clock.
var notArrived = `exists (
		select from room m join agent_inventory i on i.branch_id = m.branch_id
		where m.id = r.room_id and m.lock <> 'none' and ` + reported("$2") + `
		  and not exists (
			select from door_request d where d.branch_id = r.branch_id and d.reservation_id is null and d.device = 'room_' || m.no
			   and d.created_at > clock_timestamp() - ($2::timestamptz - r.start_at) - interval '10 minutes')
		  and not exists (
			select from door_event e where e.branch_id = r.branch_id and e.device = 'room_' || m.no and e.kind = 'door-opened'
			   and e.at > r.start_at - interval '10 minutes'))
	and not exists (select from door_request d where d.reservation_id = r.id)
	and not exists (select from pass_entry p where p.reservation_id = r.id)`
