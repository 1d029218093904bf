package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/yeolda/yeolda/cloud/internal/account"
)

// newPassword reads a new password: from standard input on request, else twice from the terminal.
func (p *program) newPassword(fromInput bool) (string, error) {
	if fromInput {
		line, err := bufio.NewReader(io.LimitReader(p.in, 4*account.MaxPassword+2)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	terminal, ok := p.in.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return "", errors.New("there is no terminal to type a password at; use --password-stdin")
	}
	var typed [2][]byte
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(p.err, prompt)
		var err error
		typed[i], err = term.ReadPassword(int(terminal.Fd()))
		fmt.Fprintln(p.err)
		if err != nil {
			return "", err
		}
	}
	if string(typed[0]) != string(typed[1]) {
		return "", errors.New("the two passwords differ")
	}
	return string(typed[0]), nil
}
