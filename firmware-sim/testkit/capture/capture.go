// Package capture keeps the output of programs for tests.
package capture

import (
	"strings"
	"sync"
)

// Output keeps what is written to it. The zero value is empty and ready to use, by several goroutines.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns everything that was written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
