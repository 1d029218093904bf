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
	brokers, err := c.resolved(ctx)
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

// resolved returns the IPv4 addresses of the brokers, each once.
func (c *fleetCommand) resolved(ctx context.Context) (addresses []netip.AddrPort, err error) {
	brokers, err := c.brokers()
	if err != nil {
		return nil, err
	}
	for _, broker := range brokers {
		if broker.Scheme != "mqtt" {
			return nil, errors.New("light agents use mqtt:// only")
		}
		address, err := resolve(ctx, broker.Host)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
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
