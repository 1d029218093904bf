package service

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v4"
)

const deploy = "../../../deploy"

// descriptions returns name and help of every metric of the service, also of those without a value yet.
func descriptions(t *testing.T) map[string]string {
	t.Helper()
	out := make(chan *prometheus.Desc)
	go func() {
		prometheus.DefaultRegisterer.(*prometheus.Registry).Describe(out)
		new(vitals).Describe(out)
		close(out)
	}()
	pattern := regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]*)"`)
	all := map[string]string{}
	for d := range out {
		if m := pattern.FindStringSubmatch(d.String()); m != nil {
			all[m[1]] = m[2]
		}
	}
	return all
}

// expressions returns every PromQL expression of the dashboards and alert rules, by file.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	dashboards, _ := filepath.Glob(filepath.Join(deploy, "grafana/*.json"))
	if len(dashboards) < 3 {
		t.Fatalf("dashboards: %v", dashboards)
	}
	for _, file := range dashboards {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			UID    string
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(raw, &board); err != nil || board.UID == "" {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				all[filepath.Base(file)] = append(all[filepath.Base(file)], target.Expr)
			}
		}
	}
	raw, err := os.ReadFile(filepath.Join(deploy, "prometheus/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	all["alerts.yml"] = []string{regexp.MustCompile(`#.*|summary:.*|runbook:.*`).ReplaceAllString(string(raw), "")}
	return all
}

func TestDashboardsAndAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := descriptions(t)
	used := map[string]bool{}
	name := regexp.MustCompile(`\b(yeolda|go|process)_[a-z_]+`)
	for file, list := range expressions(t) {
		for _, expression := range list {
			for _, metric := range name.FindAllString(expression, -1) {
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					if base, ok := strings.CutSuffix(metric, suffix); ok && known[base] != "" {
						metric = base
					}
				}
				if known[metric] == "" {
					t.Errorf("%s: metric %s does not exist", file, metric)
				}
				used[metric] = true
			}
		}
	}
	for metric := range known {
		if strings.HasPrefix(metric, "yeolda_") && !used[metric] {
			t.Errorf("metric %s is in no dashboard and no alert", metric)
		}
	}
}

func TestMetricsAreNamedByTheConventions(t *testing.T) {
	t.Parallel()
	var families []*dto.MetricFamily
	for name, help := range descriptions(t) {
		if !strings.HasPrefix(name, "yeolda_") {
			continue
		}
		kind := dto.MetricType_GAUGE
		if strings.HasSuffix(name, "_total") {
			kind = dto.MetricType_COUNTER
		}
		families = append(families, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind, Metric: []*dto.Metric{{}}})
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays days of metrics")
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yml"}} {
		command := exec.Command(promtool, args...)
		command.Dir = filepath.Join(deploy, "prometheus")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestEveryAlertIsTested checks that each rule fires in one test and is silent in another.
func TestEveryAlertIsTested(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	var tests struct {
		Tests []struct {
			Alerts []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	for name, into := range map[string]any{"alerts.yml": &rules, "alerts_test.yml": &tests} {
		raw, err := os.ReadFile(filepath.Join(deploy, "prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, a := range test.Alerts {
			if len(a.Expected) > 0 {
				fires[a.Alertname] = true
			} else {
				quiet[a.Alertname] = true
			}
		}
	}
	n := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			n++
			if !fires[rule.Alert] || !quiet[rule.Alert] {
				t.Errorf("%s: fires in a test: %v, silent in a test: %v", rule.Alert, fires[rule.Alert], quiet[rule.Alert])
			}
		}
	}
	if n < 10 {
		t.Errorf("%d rules", n)
	}
}
