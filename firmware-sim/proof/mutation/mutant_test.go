package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestMutate(t *testing.T) {
	t.Parallel()
	const text = `package p

const n = 1 + 2

func f(a, b int, d *door) bool {
	if a < b && !ok {
		a++
	}
	d.close()
	d.log.Info("x")
	return a == b
}
`
	mutants, err := mutate("p.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mutants {
		got = append(got, strings.TrimPrefix(m.where, "p.go:")+" "+m.what)
		if _, err := parser.ParseFile(token.NewFileSet(), "", m.text, 0); err != nil {
			t.Errorf("%s: %v", m.what, err)
		}
		if string(m.text) == text {
			t.Errorf("mutant %s does not change the file", m.what)
		}
	}
	want := []string{"6 && becomes ||", "6 < becomes <=", "6 < becomes >=", "6 ! is left out", "7 ++ becomes --", "9 d.close() is left out", "11 == becomes !="}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
