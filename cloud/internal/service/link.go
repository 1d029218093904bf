package service

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"

	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// link is the connection to agents: the embedded broker, or a pool of external brokers that replicas share and of embedded ones.
type link interface {
	Run(ctx context.Context) error
	Send(to protocol.Peer, m protocol.Message) error
	Online(branch string) []string
	Connected() bool
	Stats() broker.Stats
}

func (s *Service) openLink() error {
	cfg := broker.PoolConfig{Doors: s.access, Devices: s.devices, Climate: s.climate, Passes: s.passes, Log: s.log}
	if s.settings.MQTT.Embedded() {
		if err := s.openBroker(); err != nil || s.peers == nil {
			return err
		}
		cfg.Own, cfg.Peers = s.broker, s.peers.list
	}
	var brokers []*url.URL
	for _, text := range s.settings.MQTT.BrokerURLs() {
		address, err := url.Parse(text)
		if err != nil {
			return err
		}
		brokers = append(brokers, address)
	}
	cfg.Brokers = brokers
	s.link = broker.NewPool(cfg)
	return nil
}

// openBroker opens the embedded broker.
func (s *Service) openBroker() error {
	mqtt := s.settings.MQTT
	cfg := broker.Config{
		MaxConnections: agentFiles(openFiles()),
		Doors:          s.access, Devices: s.devices, Climate: s.climate, Passes: s.passes, Log: s.log,
		Credentials: func(ctx context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
			return postgres.FindAgents(ctx, s.db.Pool, usernames, found)
		},
	}
	if s.peers != nil {
		cfg.PeerSecretHash = s.peers.hash[:]
	}
	var err error
	if cfg.Listener, err = net.Listen("tcp", mqtt.Addr); err != nil {
		return err
	}
	if mqtt.TLSAddr != "" {
		certificate, err := tls.LoadX509KeyPair(mqtt.TLSCert, mqtt.TLSKey)
		if err != nil {
			return err
		}
		s.certificateEnd = certificate.Leaf.NotAfter
		if cfg.TLS, err = net.Listen("tcp", mqtt.TLSAddr); err != nil {
			return err
		}
		cfg.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	if s.broker, err = broker.New(cfg); err != nil {
		return err
	}
	s.link = s.broker
	return nil
}
