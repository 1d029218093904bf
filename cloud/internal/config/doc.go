// Package config is every setting of the service: one struct whose tags are the flags, the environment
// variables, the defaults and the help text at once, so that none of the four can say something else.
//
// A setting comes from its flag, else its environment variable, else (secrets only) the file that
// VARIABLE_FILE names, else its default. What is still open is then filled in at one place,
// [Settings.Effective]: addresses that follow from others, and the demo secrets that let the service
// run without any configuration. [Settings.Check] refuses what would be unsafe or cannot work;
// above all it never lets a demo secret be in force on an address that is reachable from elsewhere.
package config
