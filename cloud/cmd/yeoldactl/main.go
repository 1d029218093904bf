// Command yeoldactl works with a Yeolda service from a shell, through its HTTP interface and a token
// (docs/specification.md, Tokens).
//
// Exit codes: 0 success, 1 failure (with one line on standard error; also a door that did not open, and an interrupt of all commands but
// events follow), 2 wrong usage.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/yeolda/yeolda/cloud/client"
	"github.com/yeolda/yeolda/cloud/cmd/internal/exit"
)

// version is set by the linker (see the Makefile).
var version = "dev"

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// cli lists the commands.
type cli struct {
	URL   string `env:"YEOLDA_URL" default:"http://127.0.0.1:8080" help:"Address of the service."`
	Token string `env:"YEOLDA_TOKEN" help:"Token of a program. Prefer the variable: other users can read arguments."`
	JSON  bool   `help:"Print the data of the answer as JSON, one value a line."`

	Branches     branchesCmd     `cmd:"" help:"List the branches."`
	Reservations reservationsCmd `cmd:"" help:"Reservations: find, show."`
	Doors        doorsCmd        `cmd:"" help:"Doors: list, open."`
	Events       eventsCmd       `cmd:"" help:"Events: follow."`
	Webhooks     webhooksCmd     `cmd:"" help:"Webhooks: list, add, enable, disable, remove, deliveries, replay."`
	Version      versionCmd      `cmd:"" help:"Print the version."`
}

// program is shared by the commands.
type program struct {
	ctx  context.Context
	api  *client.API
	out  io.Writer
	json bool
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) (code int) {
	defer exit.Recover("yeoldactl", exitFailed, errOut, &code)
	var given cli
	parser, err := kong.New(&given,
		kong.Name("yeoldactl"),
		kong.Description("Branches, reservations, doors and events of a Yeolda service."),
		kong.Writers(out, errOut),
		kong.Exit(exit.With),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(errOut, "yeoldactl:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(errOut, "yeoldactl: %v (see yeoldactl --help)\n", err)
		return exitUsage
	}
	api, err := client.New(given.URL, given.Token)
	if err == nil {
		err = parsed.Run(&program{ctx: ctx, api: api, out: out, json: given.JSON})
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil: // the result is not known
		fmt.Fprintln(errOut, "yeoldactl: interrupted")
		return exitFailed
	default:
		fmt.Fprintln(errOut, "yeoldactl:", strings.TrimPrefix(err.Error(), "yeolda: "))
		return exitFailed
	}
}

// printList prints data as JSON, or as a table with a row for each item.
func printList[T any](p *program, data any, items []T, row func(T) []any, heads ...string) error {
	if p.json {
		return json.NewEncoder(p.out).Encode(data)
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(heads, "\t"))
	for _, item := range items {
		cells := make([]string, 0, len(heads))
		for _, cell := range row(item) {
			cells = append(cells, text(cell))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// text formats a cell; a missing value is a dash.
func text(cell any) string {
	switch value := cell.(type) {
	case *string:
		if value == nil {
			return "-"
		}
		return text(*value)
	case []string:
		return text(strings.Join(value, ","))
	case string:
		if value == "" {
			return "-"
		}
		return strings.Map(func(r rune) rune { // of a guest or a partner: a terminal would execute it, and a tab is the next column
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, value)
	}
	return fmt.Sprint(cell)
}

// versionCmd is `yeoldactl version`.
type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(p *program) error {
	fmt.Fprintln(p.out, "yeoldactl", version)
	return nil
}
