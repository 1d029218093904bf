package main

import (
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbomCmd is `yeolda sbom`.
type sbomCmd struct {
	Program string `arg:"" type:"existingfile" help:"Program that was built with Go."`
}

// Run writes which modules a program was built from, as a software bill of materials (CycloneDX 1.6). The list comes from
// the program itself, so it is right whoever built it from whatever.
func (c *sbomCmd) Run(p *program) error {
	info, err := buildinfo.ReadFile(c.Program)
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(p.out, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	return encoder.EncodeVersion(materials(filepath.Base(c.Program), info), cyclonedx.SpecVersion1_6)
}

func materials(name string, info *debug.BuildInfo) *cyclonedx.BOM {
	self := cyclonedx.Component{BOMRef: info.Path, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: version, PackageURL: packageURL(info.Main.Path, version)}
	components := []cyclonedx.Component{{BOMRef: "go", Type: cyclonedx.ComponentTypeFramework, Name: "std", Version: info.GoVersion, PackageURL: packageURL("stdlib", info.GoVersion)}}
	needs := []string{"go"}
	for _, m := range info.Deps {
		if m.Replace != nil && m.Replace.Version == "" {
			continue // a module of this repository, in its version
		}
		if m.Replace != nil {
			m = m.Replace
		}
		ref := packageURL(m.Path, m.Version)
		components = append(components, cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref,
			Properties: &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}})
		needs = append(needs, ref)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &self}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &needs}}
	return bom
}

// packageURL names a module as vulnerability databases do (purl-spec, type golang).
func packageURL(module, version string) string {
	return fmt.Sprintf("pkg:golang/%s@%s", module, version)
}
