package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/money"
)

// PutSettlements stores the provider's settlements. Their pay-out may change until it is made.
func PutSettlements(ctx context.Context, q Querier, list []money.Settlement) error {
	if len(list) == 0 {
		return nil
	}
	_, err := q.Exec(ctx, `
		insert into settlement (transaction_key, order_id, method, amount, fee, vat, pay_out, sold_on, paid_out_on)
		select * from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::int[], $6::int[], $7::int[], $8::text[]::date[], $9::text[]::date[])
		on conflict (transaction_key) do update set amount = excluded.amount, fee = excluded.fee, vat = excluded.vat, pay_out = excluded.pay_out,
		    sold_on = excluded.sold_on, paid_out_on = excluded.paid_out_on, read_at = now()`,
		array(list, func(s money.Settlement) string { return s.TransactionKey }), array(list, func(s money.Settlement) string { return s.OrderID }),
		array(list, func(s money.Settlement) string { return s.Method }), array(list, func(s money.Settlement) int { return s.Amount }),
		array(list, func(s money.Settlement) int { return s.Fee }), array(list, func(s money.Settlement) int { return s.VAT }),
		array(list, func(s money.Settlement) int { return s.PayOut }), array(list, func(s money.Settlement) string { return s.SoldOn }),
		array(list, func(s money.Settlement) *string { return null(s.PaidOutOn) }))
	return err
}

// SettlementRows returns, per branch, legal entity, local day and method, what was paid and refunded by our books and what the
// provider deducts, for a month (YYYY-MM) in the time zone of each branch, in this order. The provider's days are Korean: elsewhere a
// deduction has the day of the entry of our books that it belongs to.
func SettlementRows(ctx context.Context, q Querier, branches []string, month string) ([]money.SettlementRow, error) {
	rows, err := q.Query(ctx, `
		with ours as (
		    select b.code, coalesce(r.legal_entity, '') as entity, (e.at at time zone b.time_zone)::date as day,
		           coalesce(r.method, ( -- a payment that was returned before its reservation was confirmed
		               select l.detail->>'method' from ledger l where l.reservation_id = r.id and l.order_id = e.order_id and l.detail->>'method' <> ''
		               order by l.id desc limit 1), '') as method,
		           sum(e.won) filter (where e.kind = 'paid') as paid, -sum(e.won) filter (where e.kind <> 'paid') as refunded,
		           -sum(e.won) filter (where e.kind = 'outside') as outside
		    from money_entry e join branch b on b.id = e.branch_id join reservation r on r.id = e.reservation_id
		    where b.code = any($1) and e.at >= (($2 || '-01')::timestamp at time zone b.time_zone)
		      and e.at < ((($2 || '-01')::date + interval '1 month') at time zone b.time_zone)
		    group by 1, 2, 3, 4
		), theirs as (
		    select b.code, coalesce(r.legal_entity, '') as entity, local.day, s.method, sum(s.fee) as fee, sum(s.vat) as vat, max(s.paid_out_on) as paid_out_on
		    from settlement s join orders o on o.order_id = s.order_id join reservation r on r.id = o.reservation_id join branch b on b.id = r.branch_id
		    cross join lateral (
		        select case when b.time_zone = 'Asia/Seoul' then s.sold_on else coalesce((
		            select (e.at at time zone b.time_zone)::date from money_entry e
		            where e.reservation_id = r.id and e.order_id = s.order_id and sign(e.won) = sign(s.amount) and (e.at at time zone 'Asia/Seoul')::date = s.sold_on
		            order by abs(e.won - s.amount), e.at limit 1), s.sold_on) end) local (day)
		    where b.code = any($1) and s.sold_on >= ($2 || '-01')::date - 1 and s.sold_on < ($2 || '-01')::date + interval '1 month 1 day'
		      and local.day >= ($2 || '-01')::date and local.day < ($2 || '-01')::date + interval '1 month'
		    group by 1, 2, 3, 4
		)
		select code, entity, to_char(day, 'YYYY-MM-DD'), method, coalesce(paid, 0), coalesce(refunded, 0), coalesce(outside, 0), coalesce(fee, 0), coalesce(vat, 0),
		       coalesce(to_char(paid_out_on, 'YYYY-MM-DD'), '')
		from ours full join theirs using (code, entity, day, method) order by 1, 2, 3, 4`, branches, month)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[money.SettlementRow])
}
