package postgres_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// guests adds reservations of 01011112222 to a branch with one room: a paid one and one by an administrator a year ago, and
// one tomorrow, with a message for each. It also adds a login code and a franchise inquiry of a year ago.
func guests(t *testing.T, now time.Time) *postgres.DB {
	t.Helper()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select id, 1 from branch`)
	for _, r := range []struct {
		amount int
		method string
		start  time.Time
	}{{25000, "카드", now.AddDate(-1, 0, 0)}, {0, "관리자", now.AddDate(-1, 0, 1)}, {25000, "카드", now.AddDate(0, 0, 1)}} {
		_, err := db.Pool.Exec(t.Context(), `
			with r as (
				insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, email, email_key, amount, method, paid_at)
				select branch_id, id, 'DONE', 'CUSTOMER', $1, $2, tstzrange($1, $3), '김서연', '010-1111-2222', '01011112222', 'Kim@example.com', 'kim@example.com', $4, $5, $1
				from room returning id, branch_id)
			insert into message (reservation_id, branch_id, template, to_mobile, variables, state, created_at)
			select id, branch_id, 'reservation-confirmed', '010-1111-2222', 'secret', 'SENT', $1 from r`,
			r.start, r.start.Add(time.Hour), r.start.Add(70*time.Minute), r.amount, r.method)
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Pool.Exec(t.Context(), `
		insert into message (template, to_mobile, variables, state, created_at) values ('login-code', '+82 (0)10-1111-2222', 'secret', 'SENT', $1)`, now.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Pool.Exec(t.Context(), `
		insert into franchise_inquiry (name, mobile, email, region, message, created_at) values ('김서연', '010-1111-2222', ' KIM@example.com', '부산', '문의', $1)`, now.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func inquiries(t *testing.T, db *postgres.DB) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), `select count(*) from franchise_inquiry`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func named(t *testing.T, db *postgres.DB) (reservations, messages int) {
	t.Helper()
	err := db.Pool.QueryRow(t.Context(), `
		select (select count(*) from reservation where coalesce(name, mobile, email, mobile_key, email_key) is not null),
		       (select count(*) from message where to_mobile <> '' or variables = 'secret')`).Scan(&reservations, &messages)
	if err != nil {
		t.Fatal(err)
	}
	return reservations, messages
}

func TestContactsAreForgottenInTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := guests(t, now)
	keep := postgres.Retention{Paid: 5 * 366 * 24 * time.Hour, Other: 180 * 24 * time.Hour}
	for _, step := range []struct {
		at                     time.Time
		forgets                int64
		reservations, messages int
	}{
		{now, 1, 2, 1}, // the administrator's and both old messages; the paid one and tomorrow's are kept
		{now, 0, 2, 1},
		{now.AddDate(5, 0, 0), 1, 1, 0}, // the paid one; tomorrow's is one day short of its retention
		{now.AddDate(6, 0, 0), 1, 0, 0},
	} {
		n, err := postgres.Anonymise(t.Context(), db.Pool, keep, []byte("empty"), step.at, 100)
		if err != nil || n != step.forgets {
			t.Fatalf("%s: %d: %v", step.at, n, err)
		}
		if reservations, messages := named(t, db); reservations != step.reservations || messages != step.messages {
			t.Fatalf("%s: %d reservations and %d messages name a guest", step.at, reservations, messages)
		}
		if n := inquiries(t, db); n != 0 {
			t.Fatalf("%s: %d inquiries", step.at, n)
		}
	}
}

// A payment that was captured after its order had ended was returned and left paid_at empty. Its records are kept as long as those of
// other payments.
func TestContactOfALateCaptureIsKept(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := guests(t, now)
	exec(t, db.Pool, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, amount, order_id)
		select branch_id, id, 'EXPIRED', 'CUSTOMER', s, s + interval '1 hour', tstzrange(s, s + interval '70 minutes'), '박민준', '010-3333-4444', '01033334444', 25000, 'late'
		from room, (values (timestamptz '2025-11-19 10:00Z')) x (s)`)
	exec(t, db.Pool, `
		insert into money_entry (source, reservation_id, branch_id, order_id, kind, won, at)
		select kind, id, branch_id, order_id, kind, won, end_at from reservation, (values ('paid', 25000), ('refunded', -25000)) x (kind, won) where order_id = 'late'`)
	keep := postgres.Retention{Paid: 5 * 366 * 24 * time.Hour, Other: 180 * 24 * time.Hour}
	for _, step := range []struct {
		at   time.Time
		kept bool
	}{{now, true}, {now.AddDate(3, 0, 0), true}, {now.AddDate(5, 0, 0), false}} {
		if _, err := postgres.Anonymise(t.Context(), db.Pool, keep, []byte("empty"), step.at, 100); err != nil {
			t.Fatal(err)
		}
		var kept bool
		if err := db.Pool.QueryRow(t.Context(), `select mobile is not null from reservation where order_id = $1`, "late").Scan(&kept); err != nil || kept != step.kept {
			t.Errorf("%s: the contact is kept: %v, want %v (%v)", step.at, kept, step.kept, err)
		}
	}
}

// Messages that forward inquiries have sealed variables, so an erasure cannot tell those of others. They still reach the headquarters.
func TestInquiriesOfOthersAreStillForwarded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := guests(t, now)
	exec(t, db.Pool, `insert into message (template, to_mobile, to_email, variables, state) values ('franchise-inquiry', '', 'hq@example.com', 'inquiry', 'QUEUED')`)
	if _, _, err := postgres.Erase(t.Context(), db.Pool, "01011112222", []byte("empty"), now); err != nil {
		t.Fatal(err)
	}
	var to string
	if err := db.Pool.QueryRow(t.Context(), `select to_email from message where variables = $1`, []byte("inquiry")).Scan(&to); err != nil || to != "hq@example.com" {
		t.Errorf("the message that waits goes to %q (%v), want the headquarters", to, err)
	}
}

func TestOnePersonIsErased(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := guests(t, now)
	data, err := postgres.PersonalData(t.Context(), db.Pool, "kim@example.com")
	if err != nil || strings.Count(string(data), "김서연") != 4 {
		t.Fatalf("%s: %v", data, err)
	}
	data, err = postgres.PersonalData(t.Context(), db.Pool, "01011112222")
	if err != nil || strings.Count(string(data), "login-code") != 1 || strings.Contains(string(data), "secret") {
		t.Fatalf("%s: %v", data, err)
	}
	erased, kept, err := postgres.Erase(t.Context(), db.Pool, "01011112222", []byte("empty"), now)
	if err != nil || erased != 2 || kept != 1 {
		t.Fatalf("erased %d, kept %d: %v", erased, kept, err)
	}
	if reservations, messages := named(t, db); reservations != 1 || messages != 1 {
		t.Fatalf("%d reservations and %d messages name a guest", reservations, messages)
	}
	if n := inquiries(t, db); n != 0 {
		t.Fatalf("%d inquiries", n)
	}
	var money int
	if err := db.Pool.QueryRow(t.Context(), `select sum(amount) from reservation`).Scan(&money); err != nil || money != 50000 {
		t.Fatalf("the ledger changed: %d, %v", money, err)
	}
}

// A stranger received the messages of a reservation until its contact was corrected. The stranger's export has these messages and nothing
// else of the reservation, and an erasure removes the stranger's contact from them. The records of the guest stay.
func TestContactBeforeACorrectionIsErased(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := guests(t, now)
	exec(t, db.Pool, `
		insert into message (reservation_id, branch_id, template, to_mobile, to_email, variables, state)
		select r.id, r.branch_id, m.*, 'secret', case when m.template = 'stay-pin' then 'QUEUED' else 'SENT' end
		from (select * from reservation order by id desc limit 1) r, (values
			('stay-reminder', '+82 10-9999-0001', ''), ('reservation-moved', '010-9999-0001', 'Kim@example.com'),
			('reservation-confirmed', '', ' Stranger@Example.com'), ('stay-pin', '010-9999-0001', '')) m (template, mobile, email)`)
	export := func(contact string) string {
		t.Helper()
		data, err := postgres.PersonalData(t.Context(), db.Pool, contact)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	erase := func(contact string) {
		t.Helper()
		erased, kept, err := postgres.Erase(t.Context(), db.Pool, contact, []byte("empty"), now)
		if err != nil || erased != 0 || kept != 0 {
			t.Errorf("erasure of %s: erased %d, kept %d (%v), want no reservation", contact, erased, kept, err)
		}
	}
	for contact, want := range map[string]int{"01099990001": 3, "stranger@example.com": 1, "01099990002": 0} {
		data := export(contact)
		if n := strings.Count(data, `"template"`); n != want || !strings.Contains(data, `"reservations": []`) {
			t.Errorf("export of %s has %d messages, want %d and no reservation: %s", contact, n, want, data)
		}
		for _, trace := range []string{"김서연", "1111-2222", "Kim@", "gangnam"} {
			if strings.Contains(data, trace) {
				t.Errorf("export of %s contains %q of the guest: %s", contact, trace, data)
			}
		}
	}
	before, _ := named(t, db)
	erase("01099990001")
	erase("stranger@example.com")
	if after, _ := named(t, db); after != before {
		t.Errorf("%d reservations name the guest after the erasure of a stranger, want %d", after, before)
	}
	var left string
	err := db.Pool.QueryRow(t.Context(), `
		select string_agg(concat_ws(' ', template, to_mobile, to_email, convert_from(variables, 'UTF8')), ', ' order by template, to_mobile)
		from message where reservation_id = (select max(id) from reservation)`).Scan(&left)
	want := "reservation-confirmed   empty, reservation-confirmed 010-1111-2222  secret, reservation-moved  Kim@example.com empty, " +
		"stay-pin   empty, stay-reminder   empty"
	if err != nil || left != want {
		t.Errorf("messages after the erasures: %q (%v)\nwant %q", left, err, want)
	}
	if data := export("01011112222"); strings.Count(data, `"stay-reminder"`) != 1 || strings.Count(data, `"reservation-confirmed"`) != 4 {
		t.Errorf("the guest's export lacks messages: %s", data)
	}
	if strings.Contains(dump(t, db), "9999-0001") {
		t.Error("the number of the stranger remains")
	}
}

// After a restore, persons are found by the contacts of all tables, in the notation of Erase.
func TestContactsAreThoseOfAnErasure(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into guest_note (mobile_key, branch_id, text, created_by, created_at) select '01000000001', id, 'x', 'hq', now() from branch`)
	exec(t, db.Pool, `insert into guest_block (mobile_key, reason, created_by, created_at) values ('01000000002', 'x', 'hq', now())`)
	for _, mobile := range []string{"0082 10 0000 0003", "82-10-0000-0004", "+82 (0)10-0000-0005", "０１０－００００－０００６", "10 0000 0007"} {
		exec(t, db.Pool, `insert into franchise_inquiry (name, mobile, email, region, message) values ('x', '`+mobile+`', ' KIM@example.com', 'x', 'x')`)
	}
	exec(t, db.Pool, `insert into message (template, to_mobile, variables, state) values ('login-code', '0082-10-0000-0008', 'secret', 'SENT')`)
	got, err := postgres.Contacts(t.Context(), db.Pool)
	slices.Sort(got)
	want := "[01000000001 01000000002 01000000003 01000000004 01000000005 01000000006 01000000007 01000000008 kim@example.com]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v (%v), want %s", got, err, want)
	}
}

// notPersonal lists the columns that can hold text but no data about a guest: names of things, states, codes, times, hashes,
// sealed secrets of staff. Each new column of such a type must be added here or to PersonalTables.
var notPersonal = strings.Fields(`
	administrator.login_id administrator.password_hash administrator.role administrator.totp_pending administrator.totp_secret
	stay_message.template access_key.hash access_key.sealed access_key.kind access_key.created_by access_key.revoked_as
	administrator_recovery.code_hash login_code.browser_hash erasure_pending.person
	pass_entry.username pass_entry.journal pass_entry.pass_id pass_entry.device pass_entry.outcome pass_entry.reason pass_entry.source
	pass_entry.previous pass_entry.hash pass_journal.username pass_journal.journal pass_journal.hash
	pass_agent.username pass_agent.seal_key pass_agent.salt pass_agent.content pass_agent.code_key pass_code.username pass_code.device pass_code.request_id
	pass.id pass.pin pass_listed.username pass_listed.pass_id branch.keypads
	climate_policy.unit climate_policy.sensor climate_policy.arrive_option climate_policy.leave_option climate_policy.guest_options
	room_price.days climate_choice.option_id climate_intent.edge climate_intent.option_id climate_intent.state
	event.type event.subject webhook.url webhook.types webhook.branches webhook.secret webhook.created_by
	webhook_delivery.type webhook_delivery.subject webhook_delivery.body webhook_delivery.error
	api_token.name api_token.token_hash api_token.scopes api_token.branches api_token.created_by
	idempotent_request.principal idempotent_request.key idempotent_request.request_hash idempotent_request.answer
	reservation.consent_version work_success.work doctor_check.name doctor_check.state room.lock reservation.blocked_key reconciliation_difference.resolved_by agent_credential.report alert.kind alert.branch
	alert.subject alert.acknowledged_by alert_contact.branch door_day.device alert_contact.contacts alert_notice.contact message.medium refund.account_by refund.account_approved_by orders.order_id
	money_entry.source money_entry.order_id money_entry.kind reconciliation_run.kind reconciliation_run.failed
	agent_settings.username agent_settings.settings agent_settings.created_by agent_settings.state agent_settings.detail
	agent_diagnostics.username agent_diagnostics.request agent_diagnostics.opened_by agent_diagnostics.doctor_request agent_diagnostics.report
	agent_log.username agent_log.lines
	agent_rollout.version agent_rollout.waves agent_rollout.packages agent_rollout.state agent_rollout.reason agent_rollout.change agent_rollout.created_by
	agent_rollout_member.username agent_rollout_member.branch agent_rollout_member.state agent_rollout_member.before_version agent_rollout_member.detail agent_rollout_member.failure agent_rollout_member.before_failure
	mqtt_kind.name mqtt_kind.action grant_key.public grant_key.seed grant_key_list.keys grant_key_list.signature
	agent_credential.public_key agent_credential.rotation agent_credential.secret_hash agent_credential.username agent_enrollment.created_by agent_enrollment.token_hash
	agent_inventory.inventory agent_inventory.self_test agent_inventory.version airconditioner_command.option_id
	airconditioner_command.outcome airconditioner_command.path airconditioner_command.requested_by airconditioner_command.unit
	airconditioner_option.id airconditioner_option.path airconditioner_option.unit audit.action audit.actor audit.address
	audit.detail audit.hash audit.prev_hash audit.request_id audit.target branch.address branch.code branch.front_doors
	branch.name_en branch.name_ko branch.phone branch.schedule branch.time_zone channel_block.error channel_block.external_ref
	channel_block.state channel_listing.channel channel_listing.export_token channel_listing.external_id channel_listing.feed_etag
	channel_listing.feed_modified channel_listing.feed_sealed channel_listing.feed_url channel_listing.fetch_error channel_listing.partner door_event.detail
	passkey.credential passkey.credential_id passkey.name passkey_ceremony.challenge_hash passkey_ceremony.session
	door_event.device door_event.kind door_event.request_id door_pin.device door_pin.pin door_request.detail door_request.device
	door_request.devices door_request.id door_request.key_hash door_request.kind door_request.nonce door_request.outcomes
	door_request.requested_by door_request.state ledger.code ledger.detail ledger.kind ledger.order_id login_code.code_hash
	login_code.login_type message.channel message.error message.language message.provider_id message.state message.template
	partner_booking.external_id partner_booking.partner partner_booking.status payment.account_bank payment.confirm_key
	payment.key_set payment.payment_key payment.provider_status payment.secret rate_limit.key reconciliation_difference.detail
	reconciliation_difference.kind reconciliation_difference.order_id refund.error_code refund.idempotency_key
	refund.requested_by refund.revoked_key refund.state reservation.created_by reservation.doorlock_key reservation.hold_token
	reservation.language reservation.method reservation.order_id reservation.source reservation.state reservation_move.moved_by
	room.grade room.machine sensor_reading.location session.token webhook_event.order_id webhook_event.status
	webhook_event.transmission_id
	branch.refund_policy branch.compensation reservation.refund_policy refund_request.key
	legal_entity.code legal_entity.facts legal_entity.client_key legal_entity.widget_key legal_entity.api_key branch.legal_entity reservation.legal_entity
	reconciliation_difference.key_set reconciliation_difference.payment_key company.profile company.logo company.logo_type legal_text.version legal_text.terms_ko legal_text.terms_en legal_text.privacy_ko legal_text.privacy_en legal_text.created_by
	cash_receipt.type cash_receipt.state cash_receipt.receipt_key cash_receipt.issue_number cash_receipt.error_code
	room_profile.description_ko room_profile.description_en room_profile.amenities room_photo.alt_ko room_photo.alt_en
	guest_note.created_by guest_block.created_by handover.created_by handover.done_by
	page_file.name page_file.data room_photo_file.name room_photo_file.data room_photo_file.webp room_photo_file.avif arrival_step.text_ko arrival_step.text_en arrival_photo_file.name arrival_photo_file.data arrival_photo_file.webp arrival_photo_file.avif cleaning_photo.taken_by cleaning_photo.data order_key.sealed audit_link.source proof.document refund_link.token_hash compensation.kind compensation.reason broker_peer.url broker_peer.secret broker_list.brokers agent_credential.replaces agent_enrollment.replaces agent_rollout.kind agent_rollout_member.settings settlement.transaction_key settlement.order_id settlement.method installation.sealed installation.grant_keys`)

func TestEveryColumnIsClassified(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	known := map[string]bool{}
	for _, column := range notPersonal {
		known[column] = true
	}
	for _, table := range postgres.PersonalTables {
		for _, c := range table.Columns {
			known[table.Name+"."+c.Name] = true
		}
	}
	rows, err := db.Pool.Query(t.Context(), `
		select c.table_name || '.' || c.column_name from information_schema.columns c
		join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name and t.table_type = 'BASE TABLE'
		where c.table_schema = 'public' and c.data_type in ('text', 'jsonb', 'json', 'bytea', 'ARRAY', 'character varying', 'uuid')
		  and not exists (select from pg_class p where p.relname = c.table_name and p.relispartition)
		  and c.table_name not like $1 and c.table_name not like 'goose%'`, "river%")
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range columns {
		if !known[column] {
			t.Errorf("%s can hold personal data: add it to PersonalTables in personal.go, or to notPersonal in this test", column)
		}
	}
}

// dump returns every row of every table as text.
func dump(t *testing.T, db *postgres.DB) string {
	t.Helper()
	rows, err := db.Pool.Query(t.Context(), `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, table := range tables {
		var content string
		if err := db.Pool.QueryRow(t.Context(), `select coalesce(string_agg(to_jsonb(x)::text, E'\n'), '') from `+table+` x`).Scan(&content); err != nil {
			t.Fatal(err)
		}
		all.WriteString(table + ": " + content + "\n")
	}
	return all.String()
}

// After erasing, no table has a trace of a guest who had a row of every kind. The stays have ended, were cancelled before
// they began, or failed.
func TestErasureLeavesNothing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code) values ('gangnam')`)
	exec(t, db.Pool, `insert into room (branch_id, no) select id, 1 from branch`)
	for i, r := range []struct {
		state string
		start time.Time
	}{{"DONE", now.AddDate(0, -1, 0)}, {"CANCELED", now.AddDate(0, 0, 3)}, {"EXPIRED", now.AddDate(0, 0, 4)}} {
		_, err := db.Pool.Exec(t.Context(), `
			with r as (
				insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, email, email_key, reason, order_id, amount, method)
				select branch_id, id, $1, 'CUSTOMER', $2, $3, tstzrange($2, $4), '박지울', '010-8888-0001', '01088880001', 'Jiul@example.com', 'jiul@example.com',
				       '박지울 님 전화', $5, 18000, '가상계좌' from room returning id, branch_id, order_id),
			p as (insert into payment (reservation_id, key_set, confirm_key, account_holder, account_number, receipt_url)
			      select id, 'widget', 'c', '박지울', 'X-8888-0001', 'https://receipt.example/박지울' from r),
			f as (insert into refund (reservation_id, state, reason, amount, requested_by, account, idempotency_key, error_message)
			      select id, 'COMPLETED', '박지울 일정 변경', 18000, 'customer', 'secret', 'i', '박지울' from r),
			m as (insert into reservation_move (reservation_id, moved_by, reason, from_room, from_start, from_end, to_room, to_start, to_end)
			      select id, 'hq', '박지울(010-8888-0001) 님 요청', 1, $2, $3, 1, $2, $3 from r),
			c as (insert into cash_receipt (reservation_id, type, number, masked, url, outside)
			      select id, 'personal', 'secret', '010****0001', 'https://receipt.example/박지울', '{"how": "박지울 님과 통화"}' from r),
			d as (insert into reconciliation_difference (order_id, kind, detail, resolution) select order_id, 'x', 'y', '박지울과 통화' from r)
			insert into message (reservation_id, branch_id, template, to_mobile, to_email, variables, state)
			select id, branch_id, 'reservation-confirmed', '010-8888-0001', 'jiul@example.com', 'secret', unnest(array['SENT', 'SENDING', 'QUEUED']) from r`,
			r.state, r.start, r.start.Add(time.Hour), r.start.Add(70*time.Minute), fmt.Sprint("order", i))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		`insert into refund_request (reservation_id, key, body_hash, refund_id, amount, balance) select reservation_id, 'k', 'secret', id, 18000, 0 from refund`,
		`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, quarantine_of, reason)
		 select branch_id, room_id, 'RELEASED', 'ADMIN', start_at, end_at, occupied, id, '박지울 님이 다녀감' from reservation where state = 'CANCELED'`,
		`insert into message (template, to_mobile, variables, state) values ('login-code', '+82 (0)10-8888-0001', 'secret', 'QUEUED')`,
		`insert into franchise_inquiry (name, mobile, email, region, message) values ('박지울', '010-8888-0001', 'x@example.com', '부산', '문의')`,
		`insert into login_code (login_type, login_id, code_hash, expires_at) values ('mobile', '01088880001', 'h', now())`,
		`insert into session (token, data, expires_at) values ('t', '{"loginType":"mobile","loginId":"01088880001"}', now())`,
	} {
		exec(t, db.Pool, statement)
	}
	origin := audit.WithOrigin(t.Context(), audit.Origin{Address: "203.0.113.88", RequestID: "r"})
	for _, e := range []audit.Entry{
		{Actor: "admin:hq", Action: "reservation.move", Detail: map[string]any{"reason": "박지울(010-8888-0001) 님 요청"}},
		{Actor: "customer:1001", Action: "pin.reveal", Target: "gangnam/room_1"},
	} {
		if err := postgres.AppendAudit(origin, db.Pool, e); err != nil {
			t.Fatal(err)
		}
	}

	if erased, kept, err := postgres.Erase(t.Context(), db.Pool, "01088880001", []byte("empty"), now); err != nil || erased != 3 || kept != 0 {
		t.Fatalf("erased %d, kept %d: %v", erased, kept, err)
	}
	var guest string
	if err := db.Pool.QueryRow(t.Context(), `select address from audit where actor = $1`, "customer:1001").Scan(&guest); err != nil || guest != "" {
		t.Errorf("address of a guest in the audit log: %q (%v)", guest, err)
	}
	after := dump(t, db)
	secret := hex.EncodeToString([]byte("secret"))
	// The number is searched for in all its forms, but long enough that no clock time or random id contains it.
	for _, trace := range []string{"지울", "8888-0001", "010****0001", "88880001", "jiul", "Jiul", secret} {
		if i := strings.Index(after, trace); i >= 0 {
			t.Errorf("%q remains: …%s…", trace, after[max(0, i-150):min(len(after), i+50)])
		}
	}
}
