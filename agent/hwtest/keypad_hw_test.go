//go:build hw

package hwtest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// The lines of the Wiegand keypad, and the relay of its door.
const (
	gpioD0     = 5
	gpioD1     = 6
	gpioKeypad = 18
)

const wiegandDoor = `
[[door]]
device = "front_3"
relay = { line = "GPIO18" }
[[door.keypad]]
d0 = { line = "GPIO5" }
d1 = { line = "GPIO6" }
`

const keypadPIN = "482913"

// lease gives the agent the time and a list with one pass for front_3.
func lease(t *testing.T, b *brokertest.Broker, p *process, memoryKiB uint32) {
	t.Helper()
	if got := p.status.Inventory.Keypads; len(got) != 1 || got[0] != "front_3" || p.status.SealKey == "" {
		t.Fatalf("keypads %v, seal key %q", got, p.status.SealKey)
	}
	me := protocol.Agent{Branch: branch, Username: "agent-" + branch}
	giveTime(t, b, me)
	now := time.Now().UTC().Truncate(time.Millisecond)
	salt := make([]byte, 16)
	kdf := protocol.KDF{Name: protocol.KDFArgon2id, Time: 2, MemoryKiB: memoryKiB, Threads: 1, Salt: base64.StdEncoding.EncodeToString(salt)}
	b.SendTo(me, protocol.PassList{Branch: branch, Epoch: 1, Version: 1, IssuedAt: now, LeaseUntil: now.Add(time.Hour), KDF: kdf, Passes: []protocol.Pass{{
		Pass: request(1), Doors: []string{"front_3"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		Verifier: base64.StdEncoding.EncodeToString(argon2.IDKey([]byte(keypadPIN), salt, kdf.Time, kdf.MemoryKiB, uint8(kdf.Threads), protocol.VerifierSize)),
	}}}.Sign(brokertest.Key, me.Username))
	brokertest.Await[protocol.PassApplied](b)
}

// giveTime answers heartbeats until the agent reports that it knows the time. One beacon may not be enough: the agent ignores it if
// it has sent another heartbeat meanwhile, and the first two can follow each other at once.
func giveTime(t *testing.T, b *brokertest.Broker, me protocol.Agent) {
	t.Helper()
	for {
		r := b.Next(protocol.KindHeartbeat, protocol.KindStatus)
		if r.Kind == protocol.KindStatus {
			status, err := protocol.Decode[protocol.Status](r.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if status.Passes != nil && status.Passes.Clock == protocol.ClockTrusted {
				return
			}
			continue
		}
		beat, err := protocol.Decode[protocol.Heartbeat](r.Payload)
		if err != nil {
			t.Fatal(err)
		}
		beacon := protocol.Beacon{Branch: branch, BootID: beat.BootID, Nonce: beat.Nonce, Time: time.Now().UTC().Truncate(time.Millisecond)}
		b.SendTo(me, beacon.Sign(brokertest.Key, me.Username))
	}
}

// wantEntry waits for an entry of the journal and acknowledges it, as the cloud does: the agent sends at most 32 without.
func wantEntry(t *testing.T, b *brokertest.Broker, n uint64, outcome protocol.EntryOutcome, reason string) {
	t.Helper()
	for {
		if e := brokertest.Await[protocol.PassEntry](b); e.Entry == n { // earlier ones are repeated
			if e.Outcome != outcome || outcome == protocol.EntryRefused && e.Reason != reason {
				t.Errorf("entry %d: %+v, want %s %s", n, e, outcome, reason)
			}
			b.SendTo(protocol.Agent{Branch: branch, Username: "agent-" + branch}, protocol.PassAck{Journal: e.Journal, Entry: e.Entry})
			return
		}
	}
}

// TestWiegandKeypad types PINs as bursts of edges, which the kernel timestamps.
func TestWiegandKeypad(t *testing.T) {
	b, p := wiegand(t)
	lease(t, b, p, 64)
	press(t, "000000#")
	wantEntry(t, b, 1, protocol.EntryRefused, protocol.ReasonWrong)
	press(t, "7*"+keypadPIN+"#")
	wantEntry(t, b, 2, protocol.EntryOpened, "")
	await(t, "the end of the pulse", 30*time.Second, func() bool { return level(t, gpioKeypad) == 0 })
}

// TestKeypadLatency measures the time from the last edge of # to the pulse, with the parameters that the cloud uses, on a machine
// that executes a billion instructions a second: about half of what a core of a Raspberry Pi 4 does. HWTEST_PRESSES is how often.
func TestKeypadLatency(t *testing.T) {
	b, p := wiegand(t)
	lease(t, b, p, 12<<10)
	presses := uint64(10)
	if text := os.Getenv("HWTEST_PRESSES"); text != "" {
		var err error
		if presses, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	var took []time.Duration
	for n := range presses {
		press(t, keypadPIN+"#")
		typed := time.Now()
		for level(t, gpioKeypad) == 0 && time.Since(typed) < 3*time.Second {
			time.Sleep(time.Millisecond)
		}
		took = append(took, time.Since(typed))
		wantEntry(t, b, n+1, protocol.EntryOpened, "")
		await(t, "the end of the pulse", 30*time.Second, func() bool { return level(t, gpioKeypad) == 0 })
	}
	slices.Sort(took)
	t.Logf("from # to the pulse: median %v, p99 %v, slowest of %d %v", took[len(took)/2], took[(len(took)*99-1)/100], len(took), took[len(took)-1])
}

// wiegand starts the agent with a Wiegand keypad at front_3. The agent's files are on a disk of the test.
func wiegand(t *testing.T) (*brokertest.Broker, *process) {
	t.Helper()
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	pull(t, gpioD0, 1)
	pull(t, gpioD1, 1)
	b := brokertest.Start(t, "127.0.0.1:0")
	return b, startWith(t, b, wiegandDoor)
}

// press sends keys as bursts of four bits: a bit is a pulse to Low on D0 or D1.
func press(t *testing.T, keys string) {
	t.Helper()
	for i := range len(keys) {
		sendKey(t, keys[i])
	}
}

// sendKey sends a key. It fails if two edges may have been so far apart that the agent rightly discards them: then the clock of
// the machine does not stop with the machine, see run.sh.
func sendKey(t *testing.T, key byte) {
	t.Helper()
	value := map[byte]byte{'*': 10, '#': 11}[key]
	if value == 0 {
		value = key - '0'
	}
	lines := [2]*os.File{pullOf(t, gpioD0), pullOf(t, gpioD1)}
	defer lines[0].Close()
	defer lines[1].Close()
	set := func(line *os.File, to string) {
		t.Helper()
		if _, err := line.WriteAt([]byte(to), 0); err != nil {
			t.Fatal(err)
		}
	}
	// Within a burst, no other thread of the machine runs instead of this one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	schedule(t, unix.SCHED_FIFO, 1)
	var before, after time.Time // the last write
	longest := time.Duration(0)
	for bit := 3; bit >= 0; bit-- {
		line := lines[value>>bit&1]
		for bit < 3 && time.Since(after) < time.Millisecond { // shorter pauses are noise
		}
		earliest := before
		before = time.Now()
		set(line, "pull-down")
		if after = time.Now(); bit < 3 {
			longest = max(longest, after.Sub(earliest))
		}
		set(line, "pull-up")
	}
	schedule(t, unix.SCHED_NORMAL, 0)
	time.Sleep(60 * time.Millisecond)
	if longest >= 20*time.Millisecond {
		t.Fatalf("up to %v between the edges of %c", longest, key)
	}
}

// pullOf opens the pull of a line, so that setting it takes one call to the kernel.
func pullOf(t *testing.T, line int) *os.File {
	t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/sys/devices/platform/gpio-sim.*/%s/sim_gpio%d/pull", chip.ChipName(), line))
	if err != nil || len(found) != 1 {
		t.Fatalf("the pull of line %d: %v, %v", line, found, err)
	}
	f, err := os.OpenFile(found[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// schedule changes how the kernel schedules the thread.
func schedule(t *testing.T, policy, priority uint32) {
	t.Helper()
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority}, 0); err != nil {
		t.Fatal(err)
	}
}

// Requests of linux/uinput.h and linux/input.h.
const (
	uiDevCreate = 0x5501
	uiDevSetup  = 0x405c5503
	uiSetEvBit  = 0x40045564
	uiSetKeyBit = 0x40045565
	uiSysName   = 0x8040552c // of 64 bytes
	evIOCGrab   = 0x40044590
)

// keyboard is a USB keypad or scanner that the kernel's uinput simulates.
type keyboard struct {
	file *os.File
	name string // below /dev/input
}

func plugIn(t *testing.T, name string) keyboard {
	t.Helper()
	f, err := os.OpenFile("/dev/uinput", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	control := func(request uint, value int) {
		t.Helper()
		if err := unix.IoctlSetInt(int(f.Fd()), request, value); err != nil {
			t.Fatal(err)
		}
	}
	control(uiSetEvBit, 1) // EV_KEY
	for code := 1; code < 120; code++ {
		control(uiSetKeyBit, code)
	}
	var setup [92]byte
	binary.NativeEndian.PutUint16(setup[:], 3) // BUS_USB
	copy(setup[8:], name)
	pointer := func(request uint, data *byte) {
		t.Helper()
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(request), uintptr(unsafe.Pointer(data))); errno != 0 {
			t.Fatal(errno)
		}
	}
	pointer(uiDevSetup, &setup[0])
	control(uiDevCreate, 0)
	var text [64]byte
	pointer(uiSysName, &text[0])
	found, err := filepath.Glob("/sys/devices/virtual/input/" + unix.ByteSliceToString(text[:]) + "/event*")
	if err != nil || len(found) != 1 {
		t.Fatalf("the event device of %s: %v, %v", text, found, err)
	}
	k := keyboard{f, filepath.Base(found[0])}
	await(t, k.name, 10*time.Second, func() bool { _, err := os.Stat("/dev/input/" + k.name); return err == nil })
	return k
}

// types sends key codes: each is pressed and released.
func (k keyboard) types(t *testing.T, codes ...uint16) {
	t.Helper()
	for _, code := range codes {
		for _, value := range []uint32{1, 0} {
			k.send(t, 1, code, value)
			k.send(t, 0, 0, 0)
		}
	}
}

func (k keyboard) send(t *testing.T, kind, code uint16, value uint32) {
	t.Helper()
	var event [24]byte
	binary.NativeEndian.PutUint16(event[16:], kind)
	binary.NativeEndian.PutUint16(event[18:], code)
	binary.NativeEndian.PutUint32(event[20:], value)
	if _, err := k.file.Write(event[:]); err != nil {
		t.Fatal(err)
	}
}

// TestUSBKeypad types at a USB keypad and scans with a scanner, which types as a keyboard does; both are at one door. The agent
// grabs them, so that no other program can.
func TestUSBKeypad(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	pad, scanner := plugIn(t, "keypad"), plugIn(t, "scanner")
	b := brokertest.Start(t, "127.0.0.1:0")
	p := startWith(t, b, "\n[[door]]\ndevice = \"front_3\"\nrelay = { line = \"GPIO18\" }\n"+
		"[[door.keypad]]\nusb = \""+pad.name+"\"\n[[door.keypad]]\nusb = \""+scanner.name+"\"\n")
	lease(t, b, p, 64)
	for _, k := range []keyboard{pad, scanner} {
		f, err := os.Open("/dev/input/" + k.name)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the agent grabs "+k.name, 10*time.Second, func() bool {
			err := unix.IoctlSetInt(int(f.Fd()), evIOCGrab, 1)
			if err == nil {
				_ = unix.IoctlSetInt(int(f.Fd()), evIOCGrab, 0)
			}
			return err == unix.EBUSY
		})
		f.Close()
	}
	pad.types(t, 75, 72, 80, 73, 79, 82, 96) // 4 8 2 9 1 0 and Enter of the number pad
	wantEntry(t, b, 1, protocol.EntryRefused, protocol.ReasonWrong)
	scanner.types(t, 5, 9, 3, 10, 2, 4, 28) // 4 8 2 9 1 3 and Enter
	wantEntry(t, b, 2, protocol.EntryOpened, "")
	await(t, "the end of the pulse", 30*time.Second, func() bool { return level(t, gpioKeypad) == 0 })
	pad.types(t, 75, 72, 80, 73, 79, 81, 96)
	wantEntry(t, b, 3, protocol.EntryOpened, "")
}

// unplug removes a keyboard, as pulling its cable does.
func (k keyboard) unplug(t *testing.T) {
	t.Helper()
	if err := k.file.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of "+k.name, 10*time.Second, func() bool { _, err := os.Stat("/dev/input/" + k.name); return err != nil })
}

// awaitKeypad waits for a status in which the self-test of a door's keypad fails, or does not fail any more.
func awaitKeypad(t *testing.T, b *brokertest.Broker, device string, ok bool) {
	t.Helper()
	for {
		tests := brokertest.Await[protocol.Status](b).SelfTest
		failed := slices.ContainsFunc(tests, func(s protocol.SelfTest) bool { return s.Name == "keypad "+device && !s.OK })
		if len(tests) > 0 && failed != ok {
			return
		}
	}
}

// TestKeypadTakenOffTheWall unplugs a USB keypad while digits are typed, and plugs it in again: the status reports it in both
// directions, digits that were typed earlier are forgotten, and the keypad works again without a restart.
func TestKeypadTakenOffTheWall(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	pad := plugIn(t, "keypad")
	b := brokertest.Start(t, "127.0.0.1:0")
	p := startWith(t, b, "\n[[door]]\ndevice = \"front_3\"\nrelay = { line = \"GPIO18\" }\n[[door.keypad]]\nusb = \""+pad.name+"\"\n")
	lease(t, b, p, 64)
	pad.types(t, 75, 72, 80, 73, 79, 81, 96)
	wantEntry(t, b, 1, protocol.EntryOpened, "")
	await(t, "the end of the pulse", 30*time.Second, func() bool { return level(t, gpioKeypad) == 0 })
	pad.types(t, 75, 72, 80)
	pad.unplug(t)
	awaitKeypad(t, b, "front_3", false)
	if level(t, gpioKeypad) != 0 {
		t.Error("the door opens when its keypad is taken off the wall")
	}
	back := plugIn(t, "keypad")
	if back.name != pad.name {
		t.Fatalf("the keypad is %s, was %s", back.name, pad.name)
	}
	awaitKeypad(t, b, "front_3", true)
	back.types(t, 73, 79, 81, 96) // the rest of the PIN alone
	wantEntry(t, b, 2, protocol.EntryRefused, protocol.ReasonWrong)
	back.types(t, 75, 72, 80, 73, 79, 81, 96)
	wantEntry(t, b, 3, protocol.EntryOpened, "")
}
