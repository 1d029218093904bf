package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// TestSBOM: the list of this very program reads as CycloneDX, and names what is in it.
func TestSBOM(t *testing.T) {
	s := newShell(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := s.ok("sbom", self)
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(strings.NewReader(out), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cyclonedx.SpecVersion1_6 || len(*bom.Components) < 20 {
		t.Fatalf("%s with %d components", bom.SpecVersion, len(*bom.Components))
	}
	for _, want := range []string{"github.com/jackc/pgx/v5", "github.com/mochi-mqtt/server/v2", "std"} {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool {
			return c.Name == want && c.Version != "" && strings.HasPrefix(c.PackageURL, "pkg:golang/")
		}) {
			t.Errorf("no %s", want)
		}
	}
	if _, errOut, code := s.run("", "sbom", os.Args[0]+".none"); code == 0 || errOut == "" {
		t.Error("a program that is not there")
	}
}
