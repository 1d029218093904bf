package postgres

// ProofRepair is the verb that repairs a violation.
type ProofRepair string

// The verbs.
const (
	RepairCancel ProofRepair = "cancel" // the reservation
	RepairSettle ProofRepair = "settle" // compare the order with the provider's books
	RepairRotate ProofRepair = "rotate" // the owner's key, and with it the pass
	RepairRevoke ProofRepair = "revoke" // the credential of the agent
)

// proofRule is a rule that must hold on the rows of the service in production. Its statement returns the rows that it
// examines: subject, branch_id, detail (null: the rule holds) and target (of the repair). $1 is the time since which rows
// changed; null: all.
//
// A row is not a violation while its change is in progress: one transaction changes state, key and money together, so only
// requests to the provider are in progress between two snapshots.
type proofRule struct {
	id, text string
	repair   ProofRepair
	sql      string
}

// Fragments of the statements.
const (
	proofSince = `coalesce($1::timestamptz, '-infinity')`

	// proofSlack is the longest time between the time in a row and the commit of its transaction, and the largest
	// difference of two clocks. Events closer together have no order.
	proofSlack = `interval '5 seconds'`

	// underReview is the condition that an administrator decides, or has decided, about the money of reservation r.
	underReview = `(exists (select from reconciliation_difference x where x.order_id = r.order_id and (x.resolved_at is null or x.resolved_by is not null))
		or exists (select from refund x where x.reservation_id = r.id and x.settled_outside is not null))`

	// endsStay is the condition that refund f ended its stay.
	endsStay = `not f.keeps_stay and f.state <> 'REFUSED'`

	// activeUser is the user name of the active agent of the branch of door request d.
	activeUser = `(select a.username from agent_credential a where a.branch_id = d.branch_id and a.active and a.revoked_at is null)`

	// longestEnd is the latest end that the stay of reservation r ever had, extensions included.
	longestEnd = `greatest(r.end_at, r.stay_end,
		(select max(m.from_end) from reservation_move m where m.reservation_id = r.id),
		(select max(greatest(e.end_at, m.from_end)) from reservation e left join reservation_move m on m.reservation_id = e.id
		 where e.extends = r.id and (select ` + wasConfirmed + ` from reservation r where r.id = e.id)))`
)

// proofRules are the rules of the random soak (firmware-sim/proof) that can be checked on rows alone, under the same names,
// and those of passes.
var proofRules = []proofRule{
	{"B1", "no two live reservations of a room overlap, margins included", RepairCancel, `
		select 'reservation:' || id as subject, branch_id, case when free > opens then
			'overlaps with an earlier one of the room by ' || (free - opens) end as detail, id::text as target
		from (
			select r.*, max(shuts) over (partition by room_id order by opens, id rows between unbounded preceding and 1 preceding) as free
			from (
				select id, branch_id, room_id, updated_at, end_at + make_interval(mins => turnover_minutes) as shuts,
				       start_at + make_interval(mins => case when extends is null then 0 else turnover_minutes end) as opens
				from reservation where state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
			) r
		) live where updated_at >= ` + proofSince},

	{"M2", "a reservation is confirmed if and only if its money was received and not returned", RepairSettle, `
		select 'reservation:' || r.id as subject, r.branch_id, case
			when ` + underReview + ` then null
			when r.state = 'DONE' and not r.keys_blocked and (
				coalesce(b.won, 0) > r.amount or coalesce(b.won, 0) < r.amount - coalesce(p.returned + p.settled_outside, 0)
				and p.provider_status is distinct from 'PARTIAL_CANCELED')
				then 'confirmed for ' || r.amount || ' won, and ' || coalesce(b.won, 0) || ' won are in the books'
			when r.state in ('HOLD', 'WAITING_FOR_DEPOSIT', 'CANCELED', 'EXPIRED', 'RELEASED', 'CONFLICT')
				and coalesce(b.won, 0) not between 0 and coalesce(p.retained, 0)
				and not exists (select from refund f where f.reservation_id = r.id and f.state not in ('COMPLETED', 'REFUSED'))
				then r.state || ', and ' || b.won || ' won are in the books'
			end as detail, r.id::text as target
		from reservation r left join payment p on p.reservation_id = r.id
		left join (select reservation_id, sum(won) as won from money_entry group by 1) b on b.reservation_id = r.id
		where (p.reservation_id is not null or b.won is not null or r.source = 'CUSTOMER' and r.state = 'DONE' and r.amount > 0)
		  and r.updated_at >= ` + proofSince},

	{"M4", "the amounts that were quoted, stored, sent, and stated by the provider are one", RepairSettle, `
		select 'reservation:' || r.id as subject, r.branch_id, case
			when o.amount <> r.amount then 'the order is ' || o.amount || ' won, the reservation ' || r.amount
			when s.reservation_id is not null then 'another amount than ' || r.amount || ' won was sent to the provider'
			when r.state = 'DONE' and p.approved_at is not null and p.total_amount <> r.amount
				then 'the provider states ' || p.total_amount || ' won, the reservation ' || r.amount
			end as detail, r.id::text as target
		from reservation r join orders o on o.order_id = r.order_id left join payment p on p.reservation_id = r.id
		left join (
			select distinct l.reservation_id from ledger l join reservation r on r.id = l.reservation_id and r.order_id = l.order_id
			where l.kind in ('confirm.sent', 'account.requested') and l.amount <> r.amount
		) s on s.reservation_id = r.id
		where r.updated_at >= ` + proofSince},

	{"M6", "no more is refunded than was paid, and a completed refund has left", RepairSettle, `
		select 'reservation:' || r.id as subject, r.branch_id, case
			when ` + underReview + ` then null
			when coalesce(b.gone, 0) > coalesce(b.paid, 0) then coalesce(b.gone, 0) || ' of ' || coalesce(b.paid, 0) || ' won have left'
			when coalesce(f.completed, 0) > coalesce(b.gone, 0)
				then 'refunds of ' || f.completed || ' won are completed, and ' || coalesce(b.gone, 0) || ' won have left'
			when f.open > 1 then f.open || ' refunds are in progress'
			end as detail, r.id::text as target
		from (select reservation_id, sum(won) filter (where kind = 'paid') as paid, -sum(won) filter (where kind <> 'paid') as gone
		      from money_entry group by 1) b
		full join (select reservation_id, count(*) filter (where state not in ('COMPLETED', 'REFUSED')) as open,
		                  sum(amount) filter (where state = 'COMPLETED') as completed
		           from refund group by 1) f using (reservation_id)
		join reservation r on r.id = reservation_id where r.updated_at >= ` + proofSince},

	{"M7", "a confirmed stay has its owner's key until its refund is requested", RepairRotate, `
		select 'reservation:' || r.id as subject, r.branch_id, case
			when f.reservation_id is not null then 'confirmed, although its refund was requested'
			when k.id is null and coalesce(r.stay_end, r.end_at) > now() then 'confirmed, and has no key'
			end as detail, r.id::text as target
		from reservation r left join access_key k on k.reservation_id = r.id and k.kind = 'owner' and k.revoked_at is null
		left join refund f on f.reservation_id = r.id and ` + endsStay + ` and f.state in ('REQUESTED', 'PENDING')
		where r.state = 'DONE' and r.extends is null and r.source <> 'PARTNER' and r.updated_at >= ` + proofSince},

	// An agent repeats a report that was not acknowledged, so a report that comes twice is not a second pulse.
	{"D1", "at most one pulse for a request and a door, and only for its doors after its grant", RepairRevoke, `
		select 'door-request:' || d.id as subject, d.branch_id, case
			when d.granted_at is null then e.device || ' was driven without a grant'
			when not e.device = any (d.devices) then e.device || ' is no door of the request'
			when e.pulses > 1 then e.device || ' was driven ' || e.pulses || ' times'
			end as detail, ` + activeUser + ` as target
		from (select request_id, device, count(distinct detail ->> 'energizedMs') as pulses
		      from door_event where request_id is not null and kind in ('energized', 'released') group by 1, 2) e
		join door_request d on d.id = e.request_id where d.created_at >= ` + proofSince},

	// The agent measures the age of a grant with its own clock, and drives nothing after 1.5 seconds.
	{"D2", "a grant is given within 4 seconds of its request", RepairRevoke, `
		select 'door-request:' || d.id as subject, d.branch_id, case when d.granted_at > d.created_at + interval '4 seconds'
			then 'granted ' || (d.granted_at - d.created_at) || ' after the request' end as detail, ` + activeUser + ` as target
		from door_request d where d.granted_at is not null and d.created_at >= ` + proofSince},

	{"D3", "no grant for a reservation that is canceled, over, in another room or outside its window, nor with a revoked key", RepairRotate, `
		select 'door-request:' || d.id as subject, d.branch_id, case
			when k.revoked_at < d.granted_at - ` + proofSlack + ` then 'the key was revoked at ' || k.revoked_at
			when r.state = 'CANCELED' and r.canceled_at < d.granted_at - ` + proofSlack + ` then 'canceled at ' || r.canceled_at
			when f.created_at < d.granted_at - ` + proofSlack + ` then 'its refund was requested at ' || f.created_at
			when r.branch_id = d.branch_id and (d.kind = 'front' or d.device = 'room_' || m.no)
				and d.granted_at between r.start_at - ` + unlockLead + ` - ` + proofSlack + ` and r.end_at - ` + unlockLead + ` + ` + proofSlack + ` then null
			when d.granted_at < least(r.start_at, t.start_at) - ` + unlockLead + ` - ` + proofSlack + `
				or d.granted_at > ` + longestEnd + ` - ` + unlockLead + ` + ` + proofSlack + ` then 'granted outside the window'
			when r.branch_id <> d.branch_id or d.kind = 'room' and d.device <> 'room_' || m.no
				and not coalesce(replace(d.device, 'room_', '')::integer = any (t.rooms), false) then d.device || ' is not its room'
			end as detail, r.id::text as target
		from door_request d join reservation r on r.id = d.reservation_id join room m on m.id = r.room_id
		left join access_key k on k.hash = d.key_hash
		left join (select reservation_id, min(created_at) as created_at from refund f where ` + endsStay + ` group by 1) f on f.reservation_id = r.id
		left join lateral (select min(v.from_start) as start_at, array_agg(v.from_room) as rooms from reservation_move v
			where v.reservation_id = r.id and v.at >= d.granted_at - ` + proofSlack + `) t on true
		where d.granted_at is not null and d.created_at >= ` + proofSince},

	{"P1", "a live pass belongs to a confirmed reservation, for its room and no longer than its window", RepairRotate, `
		select 'pass:' || p.id as subject, p.branch_id, case
			when r.state <> 'DONE' then 'its reservation is ' || r.state
			when p.room_id <> r.room_id then 'it opens another room'
			when p.not_before < r.start_at - ` + unlockLead + ` then 'it opens from ' || p.not_before
			when p.not_after > greatest(coalesce(r.stay_end, r.end_at) - ` + unlockLead + `, p.not_before + interval '1 second') then 'it opens until ' || p.not_after
			end as detail, r.id::text as target
		from pass p join reservation r on r.id = p.reservation_id where p.ended_at is null and p.changed_at >= ` + proofSince},

	{"P2", "no door is opened with a pass outside the window of its reservation", RepairRotate, `
		select 'pass:' || p.id as subject, p.branch_id, case
			when e.at < p.not_before - interval '1 second' then e.device || ' opened at ' || e.at || ', before ' || p.not_before
			when e.at > p.not_after + interval '1 second' and e.at > ` + longestEnd + ` - ` + unlockLead + ` + interval '1 second'
				then e.device || ' opened at ' || e.at || ', after ' || p.not_after
			end as detail, r.id::text as target
		from pass_entry e join pass p on p.id = e.pass_id join reservation r on r.id = p.reservation_id
		where e.outcome = 'opened' and e.at >= ` + proofSince},

	{"P3", "the journal of an agent is a chain without a gap or a change", RepairRevoke, `
		select 'agent:' || j.username as subject, c.branch_id, 'the chain is broken at entry ' || j.broken as detail, j.username as target
		from pass_journal j join agent_credential c on c.username = j.username
		where c.revoked_at is null and now() >= ` + proofSince},
}
