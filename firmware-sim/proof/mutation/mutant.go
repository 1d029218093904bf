package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a file with one small change.
type mutant struct {
	path  string // of the file
	where string // path and line
	what  string // such as: < becomes <=
	text  []byte
}

// swaps are the replacements of operators. Two for one operator are two mutants.
var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.AND: {token.OR}, token.OR: {token.AND}, token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.INC: {token.DEC}, token.DEC: {token.INC}, token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
}

// mutantsOf returns all mutants of a package.
func mutantsOf(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		of, err := mutate(path, text)
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, of...)
	}
	return mutants, nil
}

// mutate returns all mutants of a file.
func mutate(path string, text []byte) (mutants []mutant, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	change := func(from, to token.Pos, with, what string) {
		position := files.Position(from)
		mutants = append(mutants, mutant{path: path, where: fmt.Sprintf("%s:%d", path, position.Line), what: what,
			text: slices.Concat(text[:position.Offset], []byte(with), text[files.Position(to).Offset:])})
	}
	operator := func(at token.Pos, is token.Token) {
		for _, other := range swaps[is] {
			change(at, at+token.Pos(len(is.String())), other.String(), fmt.Sprintf("%s becomes %s", is, other))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // constants are tested elsewhere, and types do nothing
		case *ast.BinaryExpr:
			operator(n.OpPos, n.Op)
		case *ast.IncDecStmt:
			operator(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			operator(n.TokPos, n.Tok)
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				change(n.OpPos, n.OpPos+1, "", "! is left out")
			}
		case *ast.ExprStmt:
			if call := source(files, n.X); !logs(call) {
				change(n.Pos(), n.End(), "", call+" is left out")
			}
		}
		return true
	})
	return mutants, nil
}

func source(files *token.FileSet, n ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, files, n); err != nil {
		return ""
	}
	line, _, _ := strings.Cut(b.String(), "\n")
	return line
}

// logs reports whether a call only writes to the log, which no test has to check.
func logs(call string) bool {
	return strings.Contains(call, "Logger.") || strings.Contains(call, ".log.")
}
