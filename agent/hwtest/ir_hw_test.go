//go:build hw

package hwtest

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/protocol"
)

// Constants of linux/lirc.h: LIRC_SET_REC_MODE, LIRC_MODE_MODE2, LIRC_SET_MEASURE_CARRIER_MODE,
// LIRC_SET_TRANSMITTER_MASK, and the sample types of mode2.
const (
	setRecMode         = 0x40046912
	mode2              = 4
	setMeasureCarrier  = 0x4004691D
	setTransmitterMask = 0x40046917

	kindSpace, kindPulse, kindFrequency, kindTimeout = 0, 1, 2, 3
)

// receiver is the receiving end of the loop-back.
type receiver struct {
	t  *testing.T
	fd int
}

func listen(t *testing.T) *receiver {
	t.Helper()
	fd, err := unix.Open("/dev/lirc0", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	// The receiver that measures carriers is not the usual one; the loop-back sends to both only on request.
	for request, value := range map[uint]int{setRecMode: mode2, setTransmitterMask: 3, setMeasureCarrier: 1} {
		if err := unix.IoctlSetPointerInt(fd, request, value); err != nil {
			t.Fatalf("ioctl %x: %v", request, err)
		}
	}
	return &receiver{t, fd}
}

// hear receives n frames and returns them with the carrier of the last.
func (r *receiver) hear(n int) (frames [][]uint32, carrier uint32) {
	r.t.Helper()
	var frame []uint32
	finish := func() {
		if len(frame) > 1 {
			if len(frame)%2 == 0 {
				frame = frame[:len(frame)-1]
			}
			frames = append(frames, frame)
		}
		frame = nil
	}
	buffer := make([]byte, 4096)
	silent := time.Now()
	for len(frames) < n {
		count, err := unix.Read(r.fd, buffer)
		if err != nil || count <= 0 {
			if time.Since(silent) > 5*time.Second {
				r.t.Fatalf("heard %d frames in all, want %d", len(frames), n)
			}
			time.Sleep(5 * time.Millisecond)
			continue
		}
		silent = time.Now()
		for i := 0; i+4 <= count; i += 4 {
			sample := binary.NativeEndian.Uint32(buffer[i:])
			value := sample & 0xFFFFFF
			kind := sample >> 24
			if kind == kindFrequency && value > 100_000 { // the silence at the end, in µs, as the loop-back of 6.1 reports it
				kind = kindTimeout
			}
			switch kind {
			case kindFrequency:
				carrier = value
			case kindPulse:
				frame = append(frame, value)
			case kindTimeout:
				finish()
			case kindSpace:
				switch {
				case len(frame) == 0:
				case value >= 26_000:
					finish()
				default:
					frame = append(frame, value)
				}
			}
		}
	}
	return frames, carrier
}

// command sends a code in the form of an administrator's command.
func command(t *testing.T, b *brokertest.Broker, n int, unit string, path ...string) protocol.ClimateResult {
	t.Helper()
	b.Send(branch, protocol.ClimateCommand{RequestID: request(n), AirConditionerID: protocol.LeafID(branch, unit, path...)})
	return brokertest.Await[protocol.ClimateResult](b)
}

// TestInfrared checks that units understand the signals that pass the kernel.
func TestInfrared(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	start(t, b)
	for n, tt := range []struct {
		unit   string
		path   []string
		frames []ir.Setting
	}{
		{"LG", []string{"냉방", "24", "강", "고정"}, []ir.Setting{{Power: true, Mode: "cool", Celsius: 24, Fan: "max"}, {Power: true, Swing: "off"}}},
		{"LG", []string{"전원 끄기"}, []ir.Setting{{}}},
		{"Samsung", []string{"난방", "21", "약", "회전"}, []ir.Setting{{Power: true, Mode: "heat", Celsius: 21, Fan: "low", Swing: "on"}}},
	} {
		r := listen(t)
		if got := command(t, b, 100+n, tt.unit, tt.path...); got.Outcome != protocol.ClimateSent {
			t.Fatalf("%s %v: %+v", tt.unit, tt.path, got)
		}
		frames, carrier := r.hear(len(tt.frames))
		for i, frame := range frames {
			if got, err := ir.Decode(frame); err != nil || got != tt.frames[i] {
				t.Errorf("%s %v, frame %d of %d durations: %+v, %v", tt.unit, tt.path, i+1, len(frame), got, err)
			}
		}
		if carrier < 37_500 || carrier > 38_500 {
			t.Errorf("%s %v: carrier of %d Hz", tt.unit, tt.path, carrier)
		}
	}
	if got := command(t, b, 110, "LG", "no such leaf"); got.Outcome != protocol.ClimateUnknown {
		t.Errorf("an unknown leaf: %+v", got)
	}
}

// TestLongSignal checks that a signal longer than the kernel accepts in one write arrives complete.
func TestLongSignal(t *testing.T) {
	b := brokertest.Start(t, "127.0.0.1:0")
	start(t, b)
	r := listen(t)
	began := time.Now()
	if got := command(t, b, 120, "long", "전원 끄기"); got.Outcome != protocol.ClimateSent {
		t.Fatalf("%+v", got)
	}
	if took := time.Since(began); took < longSignal {
		t.Errorf("%v of signal were sent in %v", longSignal, took)
	}
	frames, _ := r.hear(12)
	for i, frame := range frames {
		if fmt.Sprint(frame) != fmt.Sprint([]uint32{1000, 2000, 3000}) {
			t.Errorf("frame %d is %v", i+1, frame)
		}
	}
}

// longSignal is the length of the signal in testdata/long.json: twelve frames, 50 ms apart.
const longSignal = 12*6*time.Millisecond + 11*50*time.Millisecond
