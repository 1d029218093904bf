package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	// documentedCommand matches a command of yeolda in inline code, or at the beginning of a line of a script.
	documentedCommand = regexp.MustCompile("(?m)(?:`|^(?:sudo |\\$ )?)yeolda ([a-z][^`#|;\n]*)")
	commandWord       = regexp.MustCompile(`^[a-z][a-z-]*$`)
	flagWord          = regexp.MustCompile(`^--[a-z][a-z-]*`)
)

// TestCommandsInDocuments checks that every command of yeolda in a document exists, with its flags.
func TestCommandsInDocuments(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	root, found := filepath.Join("..", "..", ".."), 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (name[0] == '.' || name == "node_modules" || name == "data" || name == "bin") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" || filepath.Base(path) == "CHANGELOG.md" { // which names what was removed
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// A command in a paragraph may begin on one line and end on the next.
		joined := regexp.MustCompile("`([^`\n]*)\n([^`\n]*)`").ReplaceAllString(string(text), "`$1 $2`")
		for _, m := range documentedCommand.FindAllStringSubmatch(joined, -1) {
			found++
			if problem := unknownIn(parser.Model.Node, strings.Fields(m[1])); problem != "" {
				t.Errorf("%s: yeolda %s: there is no %s", path, m[1], problem)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 60 {
		t.Errorf("only %d commands were found", found)
	}
}

// unknownIn returns the first word that is not a command, or the first flag that its command does not have.
func unknownIn(node *kong.Node, words []string) string {
	commands := true
	for _, word := range words {
		switch name := flagWord.FindString(word); {
		case name != "":
			commands = false
			if node.DefaultCmd != nil {
				node = node.DefaultCmd
			}
			known := name == "--help"
			for _, group := range node.AllFlags(false) {
				for _, flag := range group {
					known = known || "--"+flag.Name == name
				}
			}
			if !known {
				return name
			}
		case !commands || !commandWord.MatchString(word) || len(node.Positional) > 0 || len(node.Children) == 0:
			commands = false
		default:
			child := childOf(node, word)
			if child == nil {
				return word
			}
			node = child
		}
	}
	return ""
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}
