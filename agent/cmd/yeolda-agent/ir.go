package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/yeolda/yeolda/agent/internal/lirc"
	"github.com/yeolda/yeolda/agent/ir"
)

type irCommand struct {
	Record irRecordCommand `cmd:"" help:"Record codes from a remote control into a SmartIR file, which 'codes' in the settings may name."`
}

type irRecordCommand struct {
	File         string   `arg:"" help:"The file to write; an unfinished one is continued."`
	Receiver     string   `placeholder:"DEVICE" help:"The infrared receiver: its driver or /dev/lirc1. Default: the only one."`
	Manufacturer string   `help:"For administrators."`
	Model        string   `help:"For administrators."`
	Modes        []string `default:"cool,heat,dry,fan_only,auto" help:"The modes of the remote control (${default})."`
	Fans         []string `default:"low,mid,high,auto" help:"Its fan speeds (${default})."`
	Swings       []string `help:"Its fan directions, such as off,on. Default: none."`
	Temperatures string   `default:"18-30" help:"Its temperatures (${default})."`
}

// Run records the codes.
func (c *irRecordCommand) Run(ctx context.Context) error {
	temperatures, err := temperatureRange(c.Temperatures)
	if err != nil {
		return err
	}
	recording := ir.NewRecording(c.Manufacturer, c.Model, ir.Plan{Modes: c.Modes, FanModes: c.Fans, SwingModes: c.Swings, Temperatures: temperatures})
	switch text, err := os.ReadFile(c.File); {
	case err == nil:
		if err := recording.Resume(text); err != nil {
			return err
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	s := session{recording: recording, file: c.File, out: os.Stdout, answers: lines(os.Stdin),
		record: func(ctx context.Context) ([]uint32, error) { return lirc.Record(ctx, os.DirFS("/sys"), c.Receiver) }}
	return s.run(ctx)
}

func temperatureRange(text string) ([]int, error) {
	first, last, ok := strings.Cut(text, "-")
	low, err1 := strconv.Atoi(first)
	high, err2 := strconv.Atoi(last)
	if !ok || err1 != nil || err2 != nil || low > high || high-low > 30 {
		return nil, fmt.Errorf("temperatures %q are not a range such as 18-30", text)
	}
	var list []int
	for t := low; t <= high; t++ {
		list = append(list, t)
	}
	return list, nil
}

// lines sends the lines of a reader, until it ends.
func lines(r io.Reader) <-chan string {
	list := make(chan string)
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			list <- strings.TrimSpace(s.Text())
		}
	}()
	return list
}

// session asks for one option after the other and stores each code at once, so that it may be interrupted at any time.
type session struct {
	recording *ir.Recording
	file      string
	out       io.Writer
	answers   <-chan string
	record    func(context.Context) ([]uint32, error)
}

var errFinished = errors.New("finished by the user")

func (s *session) run(ctx context.Context) error {
	s.print("Set the remote control as shown, point it at the receiver and press the button that sends the setting.\nEnter skips an option, q ends; run the same command again to continue.\n")
	paths := s.recording.Paths()
	for i, path := range paths {
		if s.recording.Has(path) {
			continue
		}
		s.print("[%d/%d] %s ... ", i+1, len(paths), strings.Join(path, " / "))
		if err := s.option(ctx, path); errors.Is(err, errFinished) {
			break
		} else if err != nil {
			return err
		}
	}
	text, err := s.recording.Encode()
	if err != nil {
		return err
	}
	set, err := ir.ParseSmartIR(text)
	if err != nil {
		return err
	}
	n := 0
	for range set.Codes.Leaves() {
		n++
	}
	s.print("%d codes in %s. Set codes = %q in the settings.\n", n, s.file, s.file)
	return nil
}

// option records one code, or skips it.
func (s *session) option(ctx context.Context, path []string) error {
	for {
		durations, err := s.await(ctx)
		switch {
		case errors.Is(err, lirc.ErrNoise):
			s.print("noise, again ... ")
			continue
		case err != nil:
			return err
		case durations == nil:
			s.print("skipped\n")
			return nil
		}
		if err := s.recording.Add(path, durations); err != nil {
			s.print("%v, again ... ", err)
			continue
		}
		known := ""
		if setting, err := ir.Decode(durations); err == nil {
			known = fmt.Sprintf(", understood as %+v: a built-in code set may fit", setting)
		}
		s.print("%d durations%s\n", len(durations), known)
		text, err := s.recording.Encode()
		if err != nil {
			return err
		}
		return replace(s.file, text, 0o644) // the user of the service reads it
	}
}

// await waits for a signal or an answer. It returns nil durations if the user skips the option.
func (s *session) await(ctx context.Context) ([]uint32, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		durations []uint32
		err       error
	}
	recorded := make(chan result, 1)
	go func() {
		durations, err := s.record(ctx)
		recorded <- result{durations, err}
	}()
	select {
	case r := <-recorded:
		return r.durations, r.err
	case answer := <-s.answers:
		cancel()
		<-recorded
		if answer == "q" {
			return nil, errFinished
		}
		return nil, nil
	}
}

// print ignores write errors: the codes are in the file.
func (s *session) print(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }
