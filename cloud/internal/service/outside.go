package service

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/chatops"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/discord"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// silenceTimeout and pingTimeout bound the use of a lost connection to an external system.
const (
	silenceTimeout = 10 * time.Second
	pingTimeout    = 5 * time.Second
)

// All calls to a system that speaks HTTP/2 share a connection. If a router or a load balancer forgets it without a reset, each of them
// would fail until the kernel gives up, which takes a quarter of an hour. Clients use the default transport or a copy of it.
func init() {
	http.DefaultTransport.(*http.Transport).HTTP2 = &http.HTTP2Config{SendPingTimeout: silenceTimeout, PingTimeout: pingTimeout}
}

// newPayments returns the client of the payment provider, and the legal entities whose keys it uses.
func newPayments(set config.Settings, db *postgres.DB, keys *seal.Keyring, log *slog.Logger) (*toss.Client, *company.Entities, error) {
	entities := &company.Entities{
		DB: db, Keys: keys, Company: &company.Service{DB: db, First: Facts(set.Legal)},
		First: company.Merchant{
			ClientKey: set.Toss.ClientKey, WidgetSecretKey: set.Toss.WidgetSecretKey.Reveal(), APISecretKey: set.Toss.APISecretKey.Reveal(),
		},
	}
	client, err := toss.New(toss.Config{
		BaseURL:         set.Toss.URL,
		WidgetSecretKey: entities.First.WidgetSecretKey,
		APISecretKey:    entities.First.APISecretKey,
		Secret:          entities.Secret,
		Logger:          log,
	})
	if err != nil {
		return nil, nil, err
	}
	entities.Rejected, entities.Lacks = client.Rejects, client.Lacks
	return client, entities, nil
}

// newPartner returns the service of partner channels.
func newPartner(set config.Settings, db *postgres.DB, verbs *reserve.Service, keys *seal.Keyring, log *slog.Logger) (*partner.Service, error) {
	public, err := url.Parse(set.HTTP.PublicURL)
	if err != nil {
		return nil, err
	}
	s := &partner.Service{
		DB: db, Reserve: verbs, Keys: keys, Partner: set.Partner.ID, ICal: channel.NewICal(public.Hostname(), db.Now), Domain: public.Hostname(), Log: log,
	}
	if set.Partner.URL == config.Off {
		return s, nil
	}
	s.Gateway, err = channel.NewGateway(channel.GatewayConfig{
		URL: set.Partner.URL, ID: set.Partner.ID, Secrets: set.PartnerSecrets(), Now: time.Now, // signatures contain the real time
	})
	return s, err
}

// newSender returns the sender of messages and mails. hooks sends those to webhooks.
func newSender(set config.Settings, hooks *notify.Hooks, brand func(context.Context) notify.Brand, log *slog.Logger) (notify.Sender, error) {
	m := set.Messages
	approved, err := notify.ParseApproved(m.SolapiTemplates)
	if err != nil {
		return nil, err
	}
	if len(approved) == 0 && m.SolapiAPIKey.Demo() {
		approved = notify.SandboxApproved()
	}
	solapi, err := notify.NewSolapi(notify.SolapiConfig{
		BaseURL: m.SolapiURL, APIKey: m.SolapiAPIKey.Reveal(), APISecret: m.SolapiAPISecret.Reveal(),
		From: m.SolapiSender, PfID: m.SolapiPFID, Templates: approved, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	if m.SMTPURL == config.Off {
		return notify.Router{Phone: solapi, Mail: noMail{}, Hooks: hooks, Brand: brand}, nil
	}
	mail, err := notify.NewMail(notify.MailConfig{URL: m.SMTPURL, From: m.MailFrom, Sandbox: m.SMTPURL == set.SandboxMail()})
	if err != nil {
		return nil, err
	}
	return notify.Router{Phone: solapi, Mail: mail, Hooks: hooks, Brand: brand}, nil
}

// noMail is the mail server of a service without mail.
type noMail struct{}

// Send fails permanently.
func (noMail) Send(context.Context, notify.Message) (notify.Receipt, error) {
	return notify.Receipt{}, &notify.Error{Channel: notify.Email, Class: notify.Permanent, Err: errors.New("mail is switched off")}
}

// newDiscord returns the chat bot for staff. Without a public key every request is rejected.
func (s *Service) newDiscord() (http.Handler, error) {
	set := s.settings.Discord
	if set.PublicKey == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), nil
	}
	key, err := s.settings.DiscordPublicKey()
	if err != nil {
		return nil, err
	}
	users, err := discord.ParseUsers(set.Users)
	if err != nil {
		return nil, err
	}
	bot := &discord.Handler{
		PublicKey: key, Users: users, Client: &discord.Client{}, Log: s.log, Now: s.now,
		Backend: &chatops.Backend{DB: s.db, Access: s.access, Climate: s.climate},
	}
	s.chat = bot
	return bot, nil
}
