package lirc

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

// samples encodes durations as the kernel does: the silence before the signal, marks and spaces, and a timeout.
func samples(durations []uint32) []byte {
	b := binary.NativeEndian.AppendUint32(nil, sampleSpace|0xFFFFFF)
	for i, d := range durations {
		kind := uint32(samplePulse)
		if i%2 == 1 {
			kind = sampleSpace
		}
		b = binary.NativeEndian.AppendUint32(b, kind|d)
	}
	return binary.NativeEndian.AppendUint32(b, 0x03000000|125_000)
}

func TestRecord(t *testing.T) {
	t.Parallel()
	want := slices.Repeat([]uint32{560, 1690}, 30)[:59]
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	go func() {
		b := samples(want)
		half := len(b) / 8 * 4
		_, _ = write.Write(b[:half])
		time.Sleep(120 * time.Millisecond) // a gap within the signal
		_, _ = write.Write(b[half:])
	}()
	got, err := record(t.Context(), int(read.Fd()))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := record(ctx, int(read.Fd())); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a signal: got %v, %v", got, err)
	}
}

func TestRecording(t *testing.T) {
	t.Parallel()
	long := slices.Repeat([]uint32{500}, minRecorded+1)
	for name, tt := range map[string]struct {
		samples []uint32
		n       int
		err     error
	}{
		"noise":              {[]uint32{samplePulse | 40, 900, samplePulse | 30}, 0, ErrNoise},
		"silence":            {[]uint32{900, 0x03000000 | 900}, 0, ErrNoise},
		"split mark":         {append([]uint32{samplePulse | 200, samplePulse | 300}, alternate(long[1:], sampleSpace)...), len(long), nil},
		"split space":        {append(append(alternate(long[:1], samplePulse), 200, 300), alternate(long[2:], samplePulse)...), len(long), nil},
		"silence at the end": {append(alternate(long, samplePulse), 90_000), len(long), nil},
		"with its frequency": {append([]uint32{0x02000000 | 38_000}, alternate(long, samplePulse)...), len(long), nil},
	} {
		var r recording
		for _, s := range tt.samples {
			if err := r.add(s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		got, err := r.signal()
		if !errors.Is(err, tt.err) || len(got) != tt.n || err == nil && !slices.Equal(got, long) {
			t.Errorf("%s: got %v, %v, want %d durations", name, got, err, tt.n)
		}
	}
	var r recording
	if err := r.add(sampleOverflow); err == nil {
		t.Error("got no error for an overflow")
	}
}

// alternate marks durations as marks and spaces in turn, starting with first.
func alternate(durations []uint32, first uint32) []uint32 {
	var list []uint32
	for i, d := range durations {
		kind := uint32(sampleSpace)
		if (i%2 == 0) == (first == samplePulse) {
			kind = samplePulse
		}
		list = append(list, kind|d)
	}
	return list
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	sys := fstest.MapFS{
		"class/rc/rc0/uevent":    {Data: []byte("DRV_NAME=gpio_ir_recv\n")},
		"class/rc/rc0/lirc0/dev": {},
		"class/rc/rc1/uevent":    {Data: []byte("DRV_NAME=pwm-ir-tx\n")},
		"class/rc/rc1/lirc1/dev": {},
	}
	for name, want := range map[string]string{"": "/dev/lirc0", "gpio_ir_recv": "/dev/lirc0", "/dev/lirc7": "/dev/lirc7"} {
		if got, err := receiver(sys, name); err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", name, got, err, want)
		}
	}
	if got, err := receiver(fstest.MapFS{}, ""); err == nil {
		t.Errorf("without a receiver: got %s", got)
	}
	if got, err := Record(t.Context(), sys, "/dev/null"); err == nil {
		t.Errorf("got %v from a device that cannot receive", got)
	}
}
