package config

import "log/slog"

// A Secret is a setting that must not be shown. Printing, logging or formatting it shows a mask.
type Secret struct {
	value string
	demo  bool
}

// NewSecret returns a secret with a value.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// Demo reports whether the value is one that the source code contains, see [Settings.Effective].
func (s Secret) Demo() bool { return s.demo }

// Set reports whether there is a value.
func (s Secret) Set() bool { return s.value != "" }

// String masks the value, its length included.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "***"
}

// GoString masks the value in %#v.
func (s Secret) GoString() string { return `config.Secret("` + s.String() + `")` }

// LogValue masks the value in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText masks the value in any encoding.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the value unchanged. It never fails, so no error message can quote it.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret{value: string(text)}
	return nil
}
