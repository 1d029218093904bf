package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// examinePayments connects to the payment provider and compares its clock. Any HTTP answer of a provider is accepted: keys are
// not tried, because calls cost money.
func (d *exam) examinePayments(ctx context.Context) {
	if there, ok := d.reach(ctx, "payments", d.settings.Toss.URL, "YEOLDA_TOSS_URL"); ok {
		d.examineClock(there)
	}
}

// reach connects to one provider. there is its time; zero if the answer has none.
func (d *exam) reach(ctx context.Context, subject, address, variable string) (there time.Time, ok bool) {
	if address == config.Off {
		d.ok(subject, "off")
		return there, false
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return there, false // reported with the settings
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if u.Scheme == "http" || u.Scheme == "https" {
		there, err = knock(ctx, u.Scheme+"://"+u.Host+"/")
	} else {
		err = dial(ctx, u)
	}
	if err != nil {
		d.fail(subject, fmt.Sprintf("%s://%s: %v", u.Scheme, u.Host, err), "check "+variable+" and the network; in development, start yeolda-sandbox")
		return there, false
	}
	d.ok(subject, u.Scheme+"://"+u.Host+" answers")
	return there, true
}

func knock(ctx context.Context, address string) (there time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return there, err
	}
	answer, err := http.DefaultClient.Do(request)
	if wrapped := new(url.Error); errors.As(err, &wrapped) {
		return there, wrapped.Err
	}
	if err != nil {
		return there, err
	}
	there, _ = http.ParseTime(answer.Header.Get("Date")) // zero without the header
	return there, answer.Body.Close()
}

// maxProviderDifference allows for whole seconds in the provider's header and for a slow network.
const maxProviderDifference = 5 * time.Second

// examineClock compares this machine's clock with the provider's, which also finds a data center without NTP.
func (d *exam) examineClock(there time.Time) {
	if there.IsZero() {
		return
	}
	if difference := time.Since(there); difference.Abs() > maxProviderDifference {
		d.fail("clock", fmt.Sprintf("this machine and the payment provider differ by %s", difference.Round(time.Second)), "run NTP here, on the database server too")
		return
	}
	d.ok("clock", "agrees with the payment provider's")
}

// examinePublic connects to the address that customers and the provider's callbacks use.
func (d *exam) examinePublic(ctx context.Context) {
	u, err := url.Parse(d.settings.HTTP.PublicURL)
	if err != nil || u.Host == "" || loopbackHost(u) {
		return
	}
	const subject = "public"
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(u.String(), "/")+"/api/v2/branches", nil)
	if err != nil {
		return
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		d.fail(subject, err.Error(), "check the name in DNS, the proxy and the firewall: the payment provider's callbacks need them too")
		return
	}
	defer answer.Body.Close()
	var envelope struct{ Status string }
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&envelope)
	if err != nil || answer.StatusCode != http.StatusOK || envelope.Status != "success" {
		d.fail(subject, fmt.Sprintf("%s answers %s, which is not an answer of this service", u.Host, answer.Status), "have the proxy forward every path, including /api/virtualaccount/webhook")
		return
	}
	d.ok(subject, u.Host+" leads here")
	if answer.TLS != nil {
		d.examineExpiry("of "+u.Host, answer.TLS.PeerCertificates[0].NotAfter)
	}
}

// depositsOf is the period whose deposits are examined.
const depositsOf = 30 * 24 * time.Hour

// examineDeposits finds callbacks that are not registered, by deposits without one. The service finds such deposits by
// asking, so no payment is lost, but customers wait for their key.
func (d *exam) examineDeposits(ctx context.Context, db *postgres.DB) error {
	deposits, unreported, err := postgres.DiagnoseDeposits(ctx, db.Pool, db.Now().Add(-depositsOf))
	if err != nil {
		return err
	}
	address := strings.TrimSuffix(d.settings.HTTP.PublicURL, "/") + "/api/virtualaccount/webhook"
	switch {
	case unreported > 0 && unreported == deposits:
		d.fail("callbacks", fmt.Sprintf("the provider has reported none of %d deposits", deposits), "register "+address+" at the payment provider, for deposits (DEPOSIT_CALLBACK), for each of the two keys")
	case unreported > 0:
		d.warn("callbacks", fmt.Sprintf("the provider has not reported %d of %d deposits", unreported, deposits), "check that "+address+" is registered for both keys, and was always reachable")
	case deposits > 0:
		d.ok("callbacks", fmt.Sprintf("the provider has reported all of %d deposits", deposits))
	}
	return nil
}

// dial opens a TCP connection to the host of a URL, at its scheme's port if it names none.
func dial(ctx context.Context, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"smtp": "587", "mqtt": "1883", "tcp": "1883", "mqtts": "8883", "ssl": "8883", "tls": "8883", "ws": "80", "wss": "443"}[u.Scheme]
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}
