package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/light"
)

const (
	// lightGC and lightMemory keep the collector from taking processor time that the service on the same machine needs.
	lightGC     = 400
	lightMemory = 96 << 20
)

// runLight runs light agents and prints their counters every second.
func (c *fleetCommand) runLight(ctx context.Context) error {
	key, err := c.grantKey()
	if err != nil {
		return err
	}
	brokers, err := c.brokers(ctx)
	if err != nil {
		return err
	}
	config := light.Config{Brokers: brokers, First: c.First - 1, GrantKeys: []ed25519.PublicKey{key}, Version: "1.0.0+sim." + release()}
	for n := c.First; n < c.First+c.Agents; n++ {
		name := fleetconfig.FleetName(n)
		config.Agents = append(config.Agents, light.Identity{Branch: name, Password: fleetconfig.DemoPassword(name)})
	}
	fleet, err := light.New(config)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(lightGC)
		debug.SetMemoryLimit(lightMemory)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return fleet.Run(ctx) })
	g.Go(func() error {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if err := json.NewEncoder(os.Stdout).Encode(fleet.Stats()); err != nil {
				return fmt.Errorf("print counters: %w", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
	return g.Wait()
}

// brokers returns the brokers of a pool, or the only one.
func (c *fleetCommand) brokers(ctx context.Context) (brokers []netip.AddrPort, err error) {
	for addr := range strings.SplitSeq(c.MQTTAddr, ",") {
		one := c.connection
		one.MQTTAddr = addr
		broker, err := one.broker()
		if err != nil {
			return nil, err
		}
		if broker.Scheme != "mqtt" {
			return nil, errors.New("light agents use mqtt:// only")
		}
		address, err := resolve(ctx, broker.Host)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(brokers, address) {
			brokers = append(brokers, address)
		}
	}
	return brokers, nil
}

// resolve returns the IPv4 address of a broker.
func resolve(ctx context.Context, hostPort string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("broker address: %w", err)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("broker address: %w", err)
	}
	return netip.ParseAddrPort(net.JoinHostPort(addresses[0].Unmap().String(), port))
}
