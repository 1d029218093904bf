package main

import (
	"reflect"
	"testing"
)

func TestReadBenchmarks(t *testing.T) {
	t.Parallel()
	const out = `goos: linux
BenchmarkExchange/embedded/1-2         	       1	      2614 exchanges/s	        95.42 p50-us	      8166 p99-us
BenchmarkExchange/mosquitto/100-2      	       1	      2238 exchanges/s
BenchmarkExchange-2	1	3 ratio
BenchmarkExchanged/no	1	3 ratio
PASS
`
	want := benchmarks{
		"embedded/1": {"exchanges/s": 2614, "p50-us": 95.42, "p99-us": 8166}, "mosquitto/100": {"exchanges/s": 2238}, "": {"ratio": 3},
	}
	if got := readBenchmarks(out, "BenchmarkExchange"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}
