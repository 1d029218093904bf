package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Settings are the settings of `yeolda serve` (docs/specification.md, Settings 1). A flag is named like its variable,
// without YEOLDA_, in lower case, with hyphens.
type Settings struct {
	HTTP     HTTP     `embed:"" group:"HTTP"`
	MQTT     MQTT     `embed:"" group:"MQTT"`
	Database Database `embed:"" group:"Database"`
	Archive  Archive  `embed:"" group:"Archive of the private database"`
	Secrets  Secrets  `embed:"" group:"Secrets"`
	Times    Times    `embed:"" group:"Times"`
	Toss     Toss     `embed:"" group:"Payment provider"`
	Messages Messages `embed:"" group:"Messages"`
	Sandbox  Sandbox  `embed:"" group:"Sandbox"`
	Partner  Partner  `embed:"" group:"Partner channel"`
	Webhooks Webhooks `embed:"" group:"Webhooks"`
	Discord  Discord  `embed:"" group:"Discord"`
	Legal    Legal    `embed:"" group:"Company, required by law"`
	Log      Log      `embed:"" group:"Log"`
	Traces   Traces   `embed:"" group:"Traces"`

	Version string `kong:"-"` // of the program; not a setting
}

// HTTP holds the addresses of the service and its treatment of clients.
type HTTP struct {
	Addr              string         `name:"http-addr" env:"YEOLDA_HTTP_ADDR" default:"127.0.0.1:8080" help:"API and pages listen here."`
	MetricsAddr       string         `env:"YEOLDA_METRICS_ADDR" default:"127.0.0.1:9090" help:"Metrics, health and profiles listen here; never a public address."`
	DrainTime         time.Duration  `env:"YEOLDA_DRAIN_TIME" default:"0s" help:"Time to continue serving after the signal to stop, while not ready, so that load balancers notice."`
	PublicURL         string         `env:"YEOLDA_PUBLIC_URL" placeholder:"URL" help:"Address customers use, for links in messages; required in production (demo: http:// and the HTTP address)."`
	CookieSecure      bool           `env:"YEOLDA_COOKIE_SECURE" default:"true" negatable:"" help:"Send cookies over HTTPS only."`
	TrustedProxies    []netip.Prefix `env:"YEOLDA_TRUSTED_PROXIES" placeholder:"CIDR" help:"Reverse proxies whose X-Forwarded-For is trusted; required behind a proxy in production, no network wider than a private one."`
	RateLimits        string         `env:"YEOLDA_RATE_LIMITS" default:"on" enum:"on,off" help:"Limit how often a client may try (on, off); off for load tests."`
	SecondFactor      []string       `name:"second-factor-roles" env:"YEOLDA_SECOND_FACTOR_ROLES" placeholder:"ROLE" help:"Roles of administrators that must set up a second factor, such as hq,manager."`
	AdminIdle         time.Duration  `name:"admin-idle-timeout" env:"YEOLDA_ADMIN_IDLE_TIMEOUT" default:"0s" help:"End a session of an administrator without requests for this long; 0: only after 24 hours."`
	StepUp            time.Duration  `name:"step-up-after" env:"YEOLDA_STEP_UP_AFTER" default:"15m" help:"Refunds, exports and PINs require that an administrator has logged in or confirmed the identity within this time; 0: never."`
	HideAccounts      bool           `env:"YEOLDA_HIDE_ACCOUNTS" help:"Give the same answer to a request for a login code with and without a reservation."`
	MaxHoldsPerClient int            `env:"YEOLDA_MAX_HOLDS_PER_CLIENT" default:"5" help:"Live unpaid reservations per client address; 0 is unlimited."`
	MaxHoldsPerPhone  int            `env:"YEOLDA_MAX_HOLDS_PER_PHONE" default:"3" help:"Live unpaid reservations per phone number; 0 is unlimited."`
}

// Limited reports whether rate limits are on.
func (h HTTP) Limited() bool { return h.RateLimits != "off" }

// Limit is a limit while rate limits are on, and 0 for unlimited otherwise.
func (h HTTP) Limit(n int) int {
	if !h.Limited() {
		return 0
	}
	return n
}

// MQTT selects the broker between service and agents: the embedded one or an external one.
type MQTT struct {
	Addr             string   `name:"mqtt-addr" env:"YEOLDA_MQTT_ADDR" default:"127.0.0.1:1883" help:"The embedded broker listens here without TLS."`
	TLSAddr          string   `name:"mqtt-tls-addr" env:"YEOLDA_MQTT_TLS_ADDR" placeholder:"ADDR" help:"The embedded broker listens here with TLS."`
	TLSCert          string   `name:"tls-cert" env:"YEOLDA_TLS_CERT" placeholder:"FILE" help:"Certificate chain of the TLS listener, PEM."`
	TLSKey           string   `name:"tls-key" env:"YEOLDA_TLS_KEY" placeholder:"FILE" help:"Private key of the TLS listener, PEM."`
	PlainPublic      bool     `name:"mqtt-plain-public" env:"YEOLDA_MQTT_PLAIN_PUBLIC" help:"Allow the listener without TLS on an address that is not loopback, as in a private network."`
	AgentPackages    string   `env:"YEOLDA_AGENT_PACKAGES" placeholder:"URL" help:"Folder with the signed packages of the agent, for rollouts (demo: the sandbox)."`
	AgentFolder      string   `env:"YEOLDA_AGENT_FOLDER" default:"/usr/share/yeolda/agent" placeholder:"DIR" help:"Folder with the signed packages of the agent that this service provides at /packages/, for new Pis."`
	AgentReleaseKeys []string `env:"YEOLDA_AGENT_RELEASE_KEYS" placeholder:"BASE64" help:"Public keys of which one must have signed a package that the installer of agents fetches; empty: it fetches none."`
	BrokerURL        string   `name:"broker-url" env:"YEOLDA_BROKER_URL" placeholder:"URL" help:"Use this MQTT v5 broker or cluster instead of the embedded one; several independent brokers, separated by commas or spaces, form a pool."`
	BrokerPeerURL    string   `name:"broker-peer-url" env:"YEOLDA_BROKER_PEER_URL" placeholder:"URL" help:"Make the embedded broker one of a pool: the address at which the other replicas reach it, such as mqtt://10.0.0.5:1883; every replica has its own."`
	AgentBrokerURL   string   `name:"agent-broker-url" env:"YEOLDA_AGENT_BROKER_URL" placeholder:"URL" help:"Addresses at which agents reach all brokers of a pool, separated by commas or spaces; they are sent to every agent. The same at every replica."`
}

// Embedded reports whether the service has an embedded broker: alone, or as one of a pool.
func (m MQTT) Embedded() bool { return len(m.BrokerURLs()) == 0 || m.BrokerPeerURL != "" }

// BrokerURLs returns the external brokers, without duplicates.
func (m MQTT) BrokerURLs() []string { return addresses(m.BrokerURL) }

// AgentBrokerURLs returns the brokers of the pool as agents reach them, without duplicates.
func (m MQTT) AgentBrokerURLs() []string { return addresses(m.AgentBrokerURL) }

func addresses(list string) []string {
	var urls []string
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if !slices.Contains(urls, text) {
			urls = append(urls, text)
		}
	}
	return urls
}

// Database is the location of the data. Administrative commands take it too.
type Database struct {
	URL      string `name:"database-url" env:"YEOLDA_DATABASE_URL" placeholder:"URL" help:"PostgreSQL to use; empty: a private one under the data directory."`
	OwnerURL string `name:"database-owner-url" env:"YEOLDA_DATABASE_OWNER_URL" placeholder:"URL" help:"The same database as the role that owns its tables, for migrations; the role of the database URL then needs and gets fewer rights. Empty: one role for both."`
	DataDir  string `name:"data-dir" env:"YEOLDA_DATA_DIR" default:"./data" help:"Files of the service."`
}

// Archive is the place of a continuous, encrypted copy of the private database. Administrative commands take it too.
type Archive struct {
	Place     string        `name:"archive" env:"YEOLDA_ARCHIVE" placeholder:"PLACE" help:"Archive the private database continuously: a folder on another disk, or https://HOST/BUCKET/FOLDER of an S3-compatible storage; empty: no archive."`
	Key       Secret        `name:"archive-key" env:"YEOLDA_ARCHIVE_KEY" placeholder:"KEY" help:"Key that encrypts the archive, from yeolda archive key; keep a copy elsewhere."`
	AccessKey string        `name:"archive-access-key" env:"YEOLDA_ARCHIVE_ACCESS_KEY" placeholder:"KEY" help:"Access key of the storage."`
	SecretKey Secret        `name:"archive-secret-key" env:"YEOLDA_ARCHIVE_SECRET_KEY" placeholder:"SECRET" help:"Secret key of the storage."`
	Keep      time.Duration `name:"archive-keep" env:"YEOLDA_ARCHIVE_KEEP" default:"720h" help:"Any moment of this time can be restored."`
}

// ModeDemo is the value of Secrets.Mode that permits demo values; the other one is "production".
const ModeDemo = "demo"

// Secrets are the service's own keys, and the mode that decides whether demo values may replace missing settings.
type Secrets struct {
	Mode          string `env:"YEOLDA_MODE" default:"production" enum:"demo,production" help:"demo: missing settings fall back to the sandbox and to demo secrets; production: a missing setting is an error (demo, production)."`
	EncryptionKey Secret `env:"YEOLDA_ENCRYPTION_KEY" placeholder:"BASE64" help:"Key of secrets at rest: 32 bytes, base64; several with commas to rotate, the first one seals."`
	GrantKey      Secret `env:"YEOLDA_GRANT_KEY" placeholder:"BASE64" help:"Ed25519 seed that signs door grants: 32 bytes, base64. Agents trust the one with which they were enrolled; rotate it with yeolda agent keys rotate."`
}

// Times are durations; the defaults are those of docs/specification.md, Limits.
type Times struct {
	CustomerHoldTTL    time.Duration `env:"YEOLDA_CUSTOMER_HOLD_TTL" default:"10m" help:"Life of a customer's hold."`
	AdminHoldTTL       time.Duration `env:"YEOLDA_ADMIN_HOLD_TTL" default:"5m" help:"Life of an administrator's hold."`
	DepositDue         time.Duration `env:"YEOLDA_DEPOSIT_DUE" default:"10m" help:"Time for the deposit to a virtual account."`
	LoginCodeTTL       time.Duration `env:"YEOLDA_LOGIN_CODE_TTL" default:"3m" help:"Life of a login code."`
	DoorResultTimeout  time.Duration `env:"YEOLDA_DOOR_RESULT_TIMEOUT" default:"7s" help:"How long a subscriber waits for the result of an unlock."`
	CustomerSessionTTL time.Duration `env:"YEOLDA_CUSTOMER_SESSION_TTL" default:"24h" help:"Life of a customer's session."`
	KeepPaid           time.Duration `env:"YEOLDA_KEEP_PAID" default:"43824h" help:"How long names and contacts of paid reservations are kept after their end (five years by law)."`
	KeepOther          time.Duration `env:"YEOLDA_KEEP_OTHER" default:"4320h" help:"How long names and contacts of other reservations and the texts of messages are kept."`
	SweepEvery         time.Duration `env:"YEOLDA_SWEEP_EVERY" default:"5s" help:"Interval at which the database is searched for payments, messages and blocks that are due."`
}

// Toss is the payment provider. In demo mode it is the sandbox unless a URL is set.
type Toss struct {
	URL             string `name:"toss-url" env:"YEOLDA_TOSS_URL" placeholder:"URL" help:"Payment provider, https://api.tosspayments.com; http:// only for loopback and the sandbox (demo: the sandbox)."`
	WidgetSecretKey Secret `name:"toss-widget-secret-key" env:"YEOLDA_TOSS_WIDGET_SECRET_KEY" placeholder:"KEY" help:"Secret key of widget payments (..._gsk_...)."`
	APISecretKey    Secret `name:"toss-api-secret-key" env:"YEOLDA_TOSS_API_SECRET_KEY" placeholder:"KEY" help:"Secret key of virtual accounts issued by staff (..._sk_...)."`
	ClientKey       string `name:"toss-client-key" env:"YEOLDA_TOSS_CLIENT_KEY" placeholder:"KEY" help:"Client key of the widget (..._gck_...)."`

	RefundApprovalAbove int `env:"YEOLDA_REFUND_APPROVAL_ABOVE" default:"300000" placeholder:"WON" help:"Won of a payment above which a part that is refunded, or a refund by hand, needs a second administrator; 0 is unlimited."`
}

// Messages are the message provider and the mail server. In demo mode each is the sandbox's unless it is set.
type Messages struct {
	SMTPURL         string            `name:"smtp-url" env:"YEOLDA_SMTP_URL" placeholder:"URL" help:"Mail server, smtp://user:password@host:587 (STARTTLS; ?tls=implicit for port 465); off: no mail (demo: the sandbox's)."`
	MailFrom        string            `env:"YEOLDA_MAIL_FROM" placeholder:"ADDRESS" help:"Sender of mails."`
	HQEmail         string            `name:"hq-email" env:"YEOLDA_HQ_EMAIL" placeholder:"ADDRESS" help:"Headquarters, for franchise inquiries, and for alerts unless contacts are set in the console."`
	SolapiURL       string            `env:"YEOLDA_SOLAPI_URL" placeholder:"URL" help:"Message provider; http:// only for loopback and the sandbox (default: https://api.solapi.com; demo without an API key: the sandbox)."`
	SolapiAPIKey    Secret            `name:"solapi-api-key" env:"YEOLDA_SOLAPI_API_KEY" placeholder:"KEY" help:"API key of the message provider."`
	SolapiAPISecret Secret            `name:"solapi-api-secret" env:"YEOLDA_SOLAPI_API_SECRET" placeholder:"SECRET" help:"API secret of the message provider."`
	SolapiSender    string            `env:"YEOLDA_SOLAPI_SENDER" placeholder:"NUMBER" help:"Registered sender number of text messages."`
	SolapiPFID      string            `name:"solapi-pf-id" env:"YEOLDA_SOLAPI_PF_ID" placeholder:"ID" help:"KakaoTalk channel (pfId) of AlimTalk messages."`
	SolapiTemplates map[string]string `env:"YEOLDA_SOLAPI_TEMPLATES" placeholder:"NAME/LANGUAGE=ID;..." help:"Approved AlimTalk templates, such as login-code/ko=KA01TP...; others go out as text messages."`
}

// Sandbox holds the addresses of yeolda-sandbox and of the simulator's stage.
type Sandbox struct {
	Addr     string `name:"sandbox-addr" env:"YEOLDA_SANDBOX_ADDR" default:"127.0.0.1:8090" help:"HTTP address of yeolda-sandbox."`
	SMTPAddr string `name:"sandbox-smtp-addr" env:"YEOLDA_SANDBOX_SMTP_ADDR" default:"127.0.0.1:8025" help:"SMTP address of yeolda-sandbox."`

	StageOrigin string `env:"YEOLDA_STAGE_ORIGIN" placeholder:"ORIGIN" help:"Origin of the simulator, whose stage shows the pages in frames (demo only)."`
}

// Webhooks limits the receivers of events.
type Webhooks struct {
	Allow []netip.Prefix `name:"webhook-allow" env:"YEOLDA_WEBHOOK_ALLOW" placeholder:"CIDR" help:"Private networks that webhooks may call, also without TLS; every other private or loopback address is refused."`
}

// Partner is the gateway of the partner booking channel. In demo mode it is the sandbox unless a URL is set.
type Partner struct {
	URL     string `name:"partner-url" env:"YEOLDA_PARTNER_URL" placeholder:"URL" help:"Gateway of the partner channel; empty or off: none (demo: the sandbox's)."`
	ID      string `name:"partner-id" env:"YEOLDA_PARTNER_ID" placeholder:"ID" help:"Our name at the partner channel."`
	Secrets Secret `name:"partner-secret" env:"YEOLDA_PARTNER_SECRET" placeholder:"SECRET" help:"Secret shared with the partner channel; several with commas to rotate, the first one signs."`
}

// Discord is the chat bot for staff, which is off unless a public key is set, and the channel for alerts.
type Discord struct {
	PublicKey string            `name:"discord-public-key" env:"YEOLDA_DISCORD_PUBLIC_KEY" placeholder:"HEX" help:"Public key of the application, which signs interactions."`
	Users     map[string]string `name:"discord-users" env:"YEOLDA_DISCORD_USERS" placeholder:"ID=BRANCH,...;..." help:"Users who may give commands, each with branches; * is every branch."`
	// WebhookURL is a contact for alerts unless the headquarters have set contacts of their own.
	WebhookURL Secret `name:"discord-webhook-url" env:"YEOLDA_DISCORD_WEBHOOK_URL" placeholder:"URL" help:"Webhook of the channel that receives alerts unless the headquarters have set contacts in the console."`
}

// Legal is the company information that Korean law requires on a shop's pages. The console replaces it.
type Legal struct {
	Company         string `name:"legal-company" env:"YEOLDA_LEGAL_COMPANY" placeholder:"NAME" help:"Company name (상호)."`
	Representative  string `name:"legal-representative" env:"YEOLDA_LEGAL_REPRESENTATIVE" placeholder:"NAME" help:"Representative (대표자)."`
	Address         string `name:"legal-address" env:"YEOLDA_LEGAL_ADDRESS" placeholder:"ADDRESS" help:"Place of business (사업장 주소)."`
	Phone           string `name:"legal-phone" env:"YEOLDA_LEGAL_PHONE" placeholder:"NUMBER" help:"Phone of customer service (전화번호)."`
	Email           string `name:"legal-email" env:"YEOLDA_LEGAL_EMAIL" placeholder:"ADDRESS" help:"E-mail of customer service (이메일)."`
	BusinessNumber  string `name:"legal-business-number" env:"YEOLDA_LEGAL_BUSINESS_NUMBER" placeholder:"NUMBER" help:"Business registration number (사업자등록번호)."`
	HostingProvider string `name:"legal-hosting-provider" env:"YEOLDA_LEGAL_HOSTING_PROVIDER" placeholder:"NAME" help:"Hosting provider (호스팅서비스 제공자), which the law requires on the first screen."`
	MailOrderNumber string `name:"legal-mail-order-number" env:"YEOLDA_LEGAL_MAIL_ORDER_NUMBER" placeholder:"NUMBER" help:"Mail-order registration number (통신판매업 신고번호)."`
}

// Log selects the level and format of the log.
type Log struct {
	Level  string `name:"log-level" env:"YEOLDA_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Lowest level that is logged (debug, info, warn, error)."`
	Format string `name:"log-format" env:"YEOLDA_LOG_FORMAT" default:"auto" enum:"auto,text,json" help:"Form of the log (auto, text, json); auto is text on a terminal."`

	AuditHeadURL Secret `name:"audit-head-url" env:"YEOLDA_AUDIT_HEAD_URL" placeholder:"URL" help:"Receives the signed head of the audit log every hour, by POST: a place on another machine that this one cannot change."`
}

// Traces is the collector of OpenTelemetry traces.
type Traces struct {
	URL string `name:"traces-url" env:"YEOLDA_TRACES_URL" placeholder:"URL" help:"Send traces by OTLP over HTTP to this collector, such as http://127.0.0.1:4318; empty: no traces."`
}
