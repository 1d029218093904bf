package lirc

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

func TestFind(t *testing.T) {
	t.Parallel()
	sys := fstest.MapFS{
		"class/rc/rc0/uevent":    {Data: []byte("NAME=rc-rc6-mce\nDRV_NAME=gpio_ir_recv\nDEV_NAME=gpio_ir_recv\n")},
		"class/rc/rc0/lirc0/dev": {},
		"class/rc/rc1/uevent":    {Data: []byte("DRV_NAME=pwm-ir-tx\n")},
		"class/rc/rc1/lirc1/dev": {},
		"class/rc/rc2/uevent":    {Data: []byte("DRV_NAME=cec\n")}, // has no LIRC device
	}
	devices, err := Devices(sys)
	if err != nil || len(devices) != 2 {
		t.Fatalf("got %+v, %v", devices, err)
	}
	for _, name := range []string{"", "pwm-ir-tx", "/dev/lirc1"} {
		if got, err := Choose(devices, name); err != nil || got.Path != "/dev/lirc1" {
			t.Errorf("%q: got %+v, %v, want /dev/lirc1", name, got, err)
		}
	}
	if got, err := Choose(devices, "gpio-ir-tx"); err == nil {
		t.Errorf("got %+v for a missing transmitter", got)
	}
	devices = append(devices, Transmitter{"pwm-ir-tx", "/dev/lirc2"})
	if got, err := Choose(devices, ""); err == nil {
		t.Errorf("got %+v although two transmitters match", got)
	}
	if got, err := Choose(nil, ""); err == nil {
		t.Errorf("got %+v without a transmitter", got)
	}
}

func TestSendErrors(t *testing.T) {
	t.Parallel()
	signal := []uint32{500, 500, 500}
	if err := Open(nil, filepath.Join(t.TempDir(), "lirc0")).Send(t.Context(), 38_000, signal); err == nil {
		t.Error("got no error from a missing device")
	}
	if err := Open(fstest.MapFS{}, "").Send(t.Context(), 38_000, signal); err == nil {
		t.Error("got no error without a transmitter")
	}
	file := filepath.Join(t.TempDir(), "lirc0")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := Open(nil, file)
	if err := d.Send(t.Context(), 38_000, signal); err == nil {
		t.Error("got no error from a file")
	}
	d.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := d.Send(ctx, 38_000, signal); ctx.Err() == nil || err == nil {
		t.Errorf("got %v from a device in use", err)
	}
}
