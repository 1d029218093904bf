package limit

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestBucketAllowsABurstAndThenOnePerInterval(t *testing.T) {
	t.Parallel()
	rate := Rate{Name: "unlock", Burst: 10, Interval: time.Second}
	var b Buckets
	on := &Limiter{}
	now := time.Now()
	for n := range 10 {
		if err := b.Take(on, rate, "a", now); err != nil {
			t.Fatalf("action %d of the burst: %v", n+1, err)
		}
	}
	exceeded := new(ExceededError)
	if err := b.Take(on, rate, "a", now); !errors.As(err, &exceeded) || exceeded.RetryAfter != time.Second {
		t.Errorf("after the burst: got %v, want to wait 1s", err)
	}
	if wait := b.Wait(on, rate, "a", now); wait != time.Second {
		t.Errorf("wait %v, want 1s", wait)
	}
	if wait := b.Wait(on, rate, "b", now); wait != 0 {
		t.Errorf("another subject: wait %v", wait)
	}
	if err := b.Take(on, rate, "b", now); err != nil {
		t.Errorf("another subject: %v", err)
	}
	if err := b.Take(on, rate, "a", now.Add(time.Second-time.Nanosecond)); err == nil {
		t.Error("allowed before the interval has passed")
	}
	if err := b.Take(on, rate, "a", now.Add(time.Second)); err != nil {
		t.Errorf("after an interval: %v", err)
	}
	later := now.Add(time.Minute)
	for n := range 10 {
		if err := b.Take(on, rate, "a", later); err != nil {
			t.Errorf("action %d of the next burst: %v", n+1, err)
		}
	}
	if err := b.Take(&Limiter{Off: true}, rate, "a", later); err != nil {
		t.Errorf("limits off: %v", err)
	}
}

func TestBucketForgetsIdleSubjects(t *testing.T) {
	t.Parallel()
	rate := Rate{Name: "unlock", Burst: 10, Interval: time.Second}
	var b Buckets
	now := time.Now()
	for n := range 1000 {
		if err := b.Take(&Limiter{}, rate, fmt.Sprint(n), now); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Take(&Limiter{}, rate, "later", now.Add(time.Minute)); err != nil || len(b.full) != 1 {
		t.Errorf("%d buckets, want 1; %v", len(b.full), err)
	}
}
