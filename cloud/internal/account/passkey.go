package account

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Errors of passkeys.
var (
	ErrNoPasskeys = errors.New("account: the public address has no domain name, which passkeys require")
	ErrPasskey    = errors.New("account: the passkey cannot be verified")
	ErrNoPasskey  = errors.New("account: no such passkey")
)

// MaxPasskeyName is the longest name of a passkey, in characters.
const MaxPasskeyName = 50

// ceremonyTTL is how long a challenge can be answered.
const ceremonyTTL = 5 * time.Minute

// ceremonies limits the challenges and the answers of a client: a client without a session may ask for them.
var ceremonies = limit.Rule{Name: "passkey-ceremony", Max: 120, Window: 10 * time.Minute}

// NewRelyingParty returns what registers and verifies passkeys for the host of the public address. For an IP address browsers make
// no passkeys (Web Authentication 3, 5.1.2): it returns nil, or for an address of this machine a relying party localhost.
func NewRelyingParty(publicURL string) (*webauthn.WebAuthn, error) {
	address, err := url.Parse(publicURL)
	if err != nil {
		return nil, err
	}
	host, origin := address.Hostname(), address.Host
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		host, origin = "localhost", net.JoinHostPort("localhost", address.Port())
	} else if err == nil || host == "" {
		return nil, nil
	}
	return webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "Yeolda", RPOrigins: []string{address.Scheme + "://" + strings.TrimSuffix(origin, ":")},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
	})
}

// passkeyUser is an administrator with passkeys, as the library needs it.
type passkeyUser struct {
	loginID     string
	handle      []byte
	credentials []webauthn.Credential
}

func (u passkeyUser) WebAuthnID() []byte                         { return u.handle }
func (u passkeyUser) WebAuthnName() string                       { return u.loginID }
func (u passkeyUser) WebAuthnDisplayName() string                { return u.loginID }
func (u passkeyUser) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

func (s *Service) passkeyUser(ctx context.Context, loginID string) (passkeyUser, error) {
	owner, err := postgres.PasskeyOwner(ctx, s.DB.Pool, loginID)
	if err != nil {
		return passkeyUser{}, err
	}
	return newPasskeyUser(owner)
}

func newPasskeyUser(owner postgres.PasskeyOwnerRow) (passkeyUser, error) {
	user := passkeyUser{loginID: owner.LoginID, handle: []byte(strconv.Itoa(owner.ID))}
	for _, raw := range owner.Credentials {
		var credential webauthn.Credential
		if err := json.Unmarshal(raw, &credential); err != nil {
			return user, fmt.Errorf("passkey of %s: %w", owner.LoginID, err)
		}
		user.credentials = append(user.credentials, credential)
	}
	return user, nil
}

// Passkeys returns the passkeys of an administrator, oldest first.
func (s *Service) Passkeys(ctx context.Context, loginID string) ([]postgres.Passkey, error) {
	return postgres.PasskeysOf(ctx, s.DB.Pool, loginID)
}

// BeginPasskey returns the options with which a browser makes a passkey for an administrator.
func (s *Service) BeginPasskey(ctx context.Context, loginID string) (*protocol.CredentialCreation, error) {
	if s.RelyingParty == nil {
		return nil, ErrNoPasskeys
	}
	user, err := s.passkeyUser(ctx, loginID)
	if err != nil {
		return nil, err
	}
	var known []protocol.CredentialDescriptor
	for _, credential := range user.credentials {
		known = append(known, credential.Descriptor())
	}
	options, session, err := s.RelyingParty.BeginRegistration(user, webauthn.WithExclusions(known))
	if err != nil {
		return nil, fmt.Errorf("begin a passkey: %w", err)
	}
	return options, s.putCeremony(ctx, session)
}

// AddPasskey stores the passkey that a browser made, and returns its id. It returns ErrPasskey if the answer does not fit a
// challenge of the last minutes.
func (s *Service) AddPasskey(ctx context.Context, loginID, name string, answer []byte, by string) (id int64, err error) {
	if s.RelyingParty == nil {
		return 0, ErrNoPasskeys
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return 0, ErrPasskey
	}
	session, err := s.takeCeremony(ctx, parsed.Response.CollectedClientData.Challenge)
	if err != nil {
		return 0, err
	}
	user, err := s.passkeyUser(ctx, loginID)
	if err != nil {
		return 0, err
	}
	credential, err := s.RelyingParty.CreateCredential(user, session, parsed)
	if err != nil {
		return 0, s.refusePasskey(ctx, err)
	}
	credential.Attestation = webauthn.CredentialAttestation{} // none was asked for
	raw, err := json.Marshal(credential)
	if err != nil {
		return 0, err
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if id, err = postgres.InsertPasskey(ctx, tx, loginID, name, credential.ID, raw, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: "administrator.passkey-add", Target: loginID})
	})
	return id, err
}

// RemovePasskey deletes a passkey of an administrator, or returns ErrNoPasskey.
func (s *Service) RemovePasskey(ctx context.Context, loginID string, id int64, by string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		found, err := postgres.DeletePasskey(ctx, tx, loginID, id)
		if err != nil {
			return err
		}
		if !found {
			return ErrNoPasskey
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: "administrator.passkey-remove", Target: loginID})
	})
}

// BeginPasskeyLogin returns the options with which a browser uses a passkey of any administrator.
func (s *Service) BeginPasskeyLogin(ctx context.Context, client string) (*protocol.CredentialAssertion, error) {
	if s.RelyingParty == nil {
		return nil, ErrNoPasskeys
	}
	if err := s.Limits.TakeClient(ctx, ceremonies, client); err != nil {
		return nil, err
	}
	options, session, err := s.RelyingParty.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("begin a login by passkey: %w", err)
	}
	return options, s.putCeremony(ctx, session)
}

// LoginWithPasskey verifies the answer of a browser to BeginPasskeyLogin and returns the administrator. The browser has verified
// the user by a PIN or a biometric feature, so a passkey is both factors. It returns ErrPasskey, also if the account is
// disabled.
func (s *Service) LoginWithPasskey(ctx context.Context, client string, answer []byte) (Principal, error) {
	if s.RelyingParty == nil {
		return Principal{}, ErrNoPasskeys
	}
	if err := s.Limits.TakeClient(ctx, ceremonies, client); err != nil {
		return Principal{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return Principal{}, ErrPasskey
	}
	session, err := s.takeCeremony(ctx, parsed.Response.CollectedClientData.Challenge)
	if err != nil {
		return Principal{}, err
	}
	find := func(rawID, _ []byte) (webauthn.User, error) {
		owner, err := postgres.PasskeyOwnerByCredential(ctx, s.DB.Pool, rawID)
		if err != nil {
			return nil, err
		}
		return newPasskeyUser(owner)
	}
	user, credential, err := s.RelyingParty.ValidatePasskeyLogin(find, session, parsed)
	if err != nil {
		return Principal{}, s.refusePasskey(ctx, err)
	}
	if credential.Authenticator.CloneWarning {
		return Principal{}, s.refusePasskey(ctx, errors.New("the counter of the passkey has decreased: it may be a copy"))
	}
	raw, err := json.Marshal(credential)
	if err != nil {
		return Principal{}, err
	}
	used, err := postgres.UsePasskey(ctx, s.DB.Pool, credential.ID, raw, s.DB.Now())
	if err != nil {
		return Principal{}, err
	}
	if !used {
		return Principal{}, s.refusePasskey(ctx, errors.New("the passkey was removed while its answer was verified"))
	}
	p, err := s.Administrator(ctx, user.WebAuthnName())
	if err != nil {
		return Principal{}, s.refusePasskey(ctx, err)
	}
	p.Passkey = true
	return p, nil
}

// refusePasskey logs why a passkey was refused, which the client does not receive.
func (s *Service) refusePasskey(ctx context.Context, cause error) error {
	if postgres.IsUnavailable(cause) {
		return cause
	}
	detail := cause.Error()
	if refusal := new(protocol.Error); errors.As(cause, &refusal) {
		detail = refusal.Details
	}
	s.Log.WarnContext(ctx, "a passkey was refused", "error", detail)
	return ErrPasskey
}

func (s *Service) putCeremony(ctx context.Context, session *webauthn.SessionData) error {
	raw, err := json.Marshal(session)
	if err != nil {
		return err
	}
	now := s.DB.Now()
	return postgres.InsertCeremony(ctx, s.DB.Pool, hashChallenge(session.Challenge), raw, now, now.Add(ceremonyTTL))
}

// takeCeremony returns what BeginPasskey or BeginPasskeyLogin stored for a challenge, which can be answered once.
func (s *Service) takeCeremony(ctx context.Context, challenge string) (session webauthn.SessionData, err error) {
	raw, found, err := postgres.TakeCeremony(ctx, s.DB.Pool, hashChallenge(challenge), s.DB.Now())
	if err != nil {
		return session, err
	}
	if !found {
		return session, ErrPasskey
	}
	return session, json.Unmarshal(raw, &session)
}

func hashChallenge(challenge string) []byte {
	sum := sha256.Sum256([]byte(challenge))
	return sum[:]
}
