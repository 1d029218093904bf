package config

import "log/slog"

// A Secret is a setting that must not be shown. Printing, logging or formatting one shows a mask.
type Secret struct {
	value string
	demo  bool
}

// NewSecret makes a secret of a value.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value, for the one place that needs it.
func (s Secret) Reveal() string { return s.value }

// Demo reports whether [Settings.Effective] found or filled in a value that stands in the source code.
func (s Secret) Demo() bool { return s.demo }

// Set reports whether there is a value.
func (s Secret) Set() bool { return s.value != "" }

// String masks the value. Nothing of it is shown, not even its length.
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

// UnmarshalText takes the value as it stands. It never fails, so that no error message can quote it.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret{value: string(text)}
	return nil
}
