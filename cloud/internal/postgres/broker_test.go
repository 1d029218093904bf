package postgres_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// brokerQueries are the queries of the deployment's broker, with the client in place of its placeholders.
func brokerQueries(t *testing.T, username, clientID string) (password, rules string) {
	t.Helper()
	raw, err := os.ReadFile("../../../deploy/kubernetes/emqx.conf")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`query = "([^"]+)"`).FindAllStringSubmatch(string(raw), -1)
	if len(found) != 2 {
		t.Fatalf("%d queries in emqx.conf", len(found))
	}
	fill := strings.NewReplacer("${username}", "'"+username+"'", "${clientid}", "'"+clientID+"'")
	return fill.Replace(found[0][1]), fill.Replace(found[1][1])
}

func texts(t *testing.T, q postgres.Querier, sql string) [][]string {
	t.Helper()
	rows, err := q.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (line []string, err error) {
		values, err := row.Values()
		for _, v := range values {
			line = append(line, v.(string))
		}
		return line, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestExternalBrokerRulesMatchProtocol(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db.Pool, `insert into branch (code, front_doors) values ('gangnam', '{front_1}'), ('hongdae', '{front_1}')`)
	hash := sha256.Sum256([]byte("secret"))
	for _, agent := range []struct{ branch, username string }{{"gangnam", "agent-gangnam-x"}, {"hongdae", "agent-hongdae"}, {"hongdae", "agent-old"}} {
		if err := postgres.InsertAgent(t.Context(), db.Pool, agent.branch, postgres.NewCredential{Username: agent.username, SecretHash: hash[:]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := postgres.RevokeAgent(t.Context(), db.Pool, "agent-old"); err != nil {
		t.Fatal(err)
	}
	password, rules := brokerQueries(t, "agent-gangnam-x", "agent-gangnam-x")
	if got := texts(t, db.Pool, password); len(got) != 1 || got[0][0] != hex.EncodeToString(hash[:]) {
		t.Errorf("password: %v", got)
	}
	told := map[[2]string]bool{}
	for _, rule := range texts(t, db.Pool, rules) {
		if rule[0] != "allow" {
			t.Errorf("%v", rule)
		}
		told[[2]string{rule[1], rule[2]}] = true
	}
	n := 0
	own := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-x"}
	for _, of := range []protocol.Agent{own, {Branch: "gangnam"}, {Branch: "gangnam", Username: "agent-gangnam-y"},
		{Branch: "hongdae"}, {Branch: "hongdae", Username: "agent-gangnam-x"}, {Branch: "hongdae", Username: "agent-hongdae"}} {
		for kind := range protocol.Kinds() {
			topic := of.Topic(kind)
			for action, may := range map[string]bool{
				"publish":   own.MayPublish(topic),
				"subscribe": own.MaySubscribe(topic),
			} {
				if told[[2]string{action, topic}] != may {
					t.Errorf("%s %s: got a rule %v, want %v: each kind needs a row in mqtt_kind", action, topic, !may, may)
				}
				if may {
					n++
				}
			}
		}
	}
	if n != len(told) {
		t.Errorf("%d rules, want %d: %v", len(told), n, told)
	}
	for name, client := range map[string][2]string{
		"another's client id": {"agent-hongdae", "agent-gangnam-x"}, "revoked": {"agent-old", "agent-old"}, "unknown": {"x", "x"},
	} {
		if password, _ := brokerQueries(t, client[0], client[1]); len(texts(t, db.Pool, password)) != 0 {
			t.Errorf("%s may connect", name)
		}
	}
	if _, rules := brokerQueries(t, "agent-old", ""); len(texts(t, db.Pool, rules)) != 0 {
		t.Error("a revoked agent has rights")
	}
}
