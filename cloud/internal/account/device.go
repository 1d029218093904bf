package account

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// DeviceTTL is how long a browser is recognised after a successful login.
const DeviceTTL = 180 * 24 * time.Hour

// A Device is the value of a cookie that a browser keeps after a successful login. Wrong passwords and codes from
// elsewhere do not lock a recognised device out; it has limits of its own. It opens nothing by itself.
type Device string

// NewDevice returns the device of a browser that has just logged in as a subject.
func (s *Service) NewDevice(subject string) Device {
	id := rand.Text()
	return Device(id + "." + base64.RawURLEncoding.EncodeToString(s.Keys.MAC("device", subject+"\x00"+id)))
}

// recognised returns the id of a device that has logged in as the subject before, or "".
func (s *Service) recognised(d Device, subject string) string {
	id, mac, _ := strings.Cut(string(d), ".")
	given, err := base64.RawURLEncoding.DecodeString(mac)
	is := func(mac []byte) bool { return hmac.Equal(given, mac) }
	if err != nil || !slices.ContainsFunc(s.Keys.MACs("device", subject+"\x00"+id), is) {
		return ""
	}
	return id
}

// AdministratorSubject is the subject of an administrator's devices.
func AdministratorSubject(loginID string) string { return "admin:" + loginID }
