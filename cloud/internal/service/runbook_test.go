package service

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunbook checks that the runbook has a chapter for every alert.
func TestRunbook(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(filepath.Join(deploy, "prometheus/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile(filepath.Join(deploy, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	chapters := map[string]bool{}
	for _, title := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(runbook), -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title[1]), "")
		chapters[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	links := regexp.MustCompile(`deploy/README\.md#([a-z0-9-]+)`).FindAllStringSubmatch(string(rules), -1)
	if len(links) < 10 {
		t.Fatalf("%d alerts with a chapter", len(links))
	}
	for _, link := range links {
		if !chapters[link[1]] {
			t.Errorf("the runbook has no chapter %s", link[1])
		}
	}
}
