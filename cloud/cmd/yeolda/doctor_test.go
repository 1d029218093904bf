package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctorOnThePackage fills in the settings file of the package as the runbook describes and expects no FAIL.
func TestDoctorOnThePackage(t *testing.T) {
	s := newShell(t).withDatabase()
	file, err := os.ReadFile("../../../deploy/systemd/yeolda.env")
	if err != nil {
		t.Fatal(err)
	}
	values := complete()
	values["YEOLDA_SOLAPI_PF_ID"] = "KA01PF"
	for line := range strings.Lines(string(file)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		if value == "" {
			if value = values[name]; strings.HasPrefix(name, "YEOLDA_LEGAL_") {
				value = "set by the operator"
			}
			if value == "" {
				t.Errorf("the runbook does not say what to write after %s=", name)
			}
		}
		t.Setenv(name, value)
	}
	s.run("correct horse battery\n", "admin", "add", "boss", "--role=hq", "--password-stdin")
	backups := t.TempDir()
	if err := os.WriteFile(filepath.Join(backups, "yeolda-20261120T183000Z.dump"), []byte("PGDMP"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, _ := s.run("", "doctor", "--offline", "--backups="+backups)
	for line := range strings.Lines(blot(out)) {
		if strings.HasPrefix(line, "FAIL") {
			t.Errorf("%s%s", line, errOut)
		}
	}
	if !strings.Contains(out, "ok    settings") || !strings.Contains(out, "ok    schema") {
		t.Errorf("doctor examined too little:\n%s", out)
	}

	// In a container of its own, the doctor does not see the files.
	s.ok("backup", filepath.Join(backups, "yeolda-20261121T183000Z.dump"))
	out, errOut, _ = s.run("", "doctor", "--offline", "--backups="+filepath.Join(backups, "elsewhere"))
	if !strings.Contains(out, "ok    backup       the last one that the database records is of") {
		t.Errorf("doctor without the directory of the backups:\n%s%s", out, errOut)
	}
}
