package postgres

import "context"

// PutBrokerList makes the addresses of a pool's brokers for agents the last list, unless they are already. brokers may be empty:
// agents then use only the addresses that they were set up with. Of two replicas that start with different lists at the same moment
// one is ignored; all replicas have the same setting.
func PutBrokerList(ctx context.Context, q Querier, brokers []string) error {
	_, err := q.Exec(ctx, `
		insert into broker_list (epoch, brokers)
		select coalesce(last.epoch, 0) + 1, $1
		from (select 1) always left join lateral (select * from broker_list order by epoch desc limit 1) last on true
		where coalesce(last.brokers, '{}') <> $1
		on conflict do nothing`, append([]string{}, brokers...))
	return err
}
