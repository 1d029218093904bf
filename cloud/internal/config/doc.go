// Package config defines every setting of the service in one struct, whose tags are the flags, the environment variables,
// the defaults and the help text.
//
// A setting comes from its flag, else its environment variable, else (secrets only) the file named by VARIABLE_FILE, else
// its default. [Settings.Effective] then fills in values that follow from others, and in demo mode those of the sandbox.
// [Settings.Check] rejects settings that are missing, unsafe or cannot work.
package config
