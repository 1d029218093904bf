package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// prefix is common to all variables of this project.
const prefix = "YEOLDA_"

// fileSuffix ends the name of a variable that names a file with the value, as container platforms mount secrets.
const fileSuffix = "_FILE"

// IgnoreEmpty removes empty variables of the service from the environment: a compose file passes an unset variable on
// as an empty one.
func IgnoreEmpty() {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, prefix) && value == "" {
			_ = os.Unsetenv(name) // fails on no supported system
		}
	}
}

// elsewhere lists variables of the other programs and of single commands, which are often set in the same environment.
var elsewhere = []string{"YEOLDA_DISCORD_BOT_TOKEN", "YEOLDA_SIM_", "YEOLDA_SANDBOX_", "YEOLDA_BRANCH",
	"YEOLDA_AGENT_CREDENTIALS", "YEOLDA_AGENT_HEALTH", "YEOLDA_AGENT_KEY", "YEOLDA_AGENT_PASSWORD", "YEOLDA_AGENT_PROGRAM", "YEOLDA_AGENT_SETTINGS",
	"YEOLDA_AGENT_TRIAL", "YEOLDA_AGENT_UPDATE", "YEOLDA_AGENT_USERNAME", "YEOLDA_GRANT_PUBLIC_KEYS", "YEOLDA_PG_BIN", "YEOLDA_TEST_"}

// UnknownVariables returns variables of the environment that begin with the prefix but are not settings.
func UnknownVariables() []string {
	known := map[string]bool{}
	collect(reflect.TypeFor[Settings](), known)
	var unknown []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		ours := slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if strings.HasPrefix(name, prefix) && !ours && !known[strings.TrimSuffix(name, fileSuffix)] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// collect gathers the variables of a struct of settings.
func collect(t reflect.Type, into map[string]bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		if variable, ok := field.Tag.Lookup("env"); ok {
			into[variable] = true
		} else if field.Type.Kind() == reflect.Struct {
			collect(field.Type, into)
		}
	}
}

// SecretFiles is a [kong.Resolver] for secrets: if VARIABLE_FILE is set, the value is the content of that file without
// its final newline. Setting both variables is an error.
var SecretFiles = kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	variable, file := secretFile(flag)
	if file == "" {
		return nil, nil
	}
	if _, both := os.LookupEnv(variable); both {
		return nil, fmt.Errorf("both %s and %s%s are set", variable, variable, fileSuffix)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", variable, fileSuffix, err)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
})

// secretFile returns the variable of a secret flag and the file named by its VARIABLE_FILE, if any. The URLs of the
// database and of the mail server count as secrets because they contain passwords.
func secretFile(flag *kong.Flag) (variable, file string) {
	if len(flag.Envs) == 0 {
		return "", ""
	}
	variable = flag.Envs[0]
	isSecret := flag.Target.Type() == reflect.TypeFor[Secret]()
	withPassword := []string{"YEOLDA_DATABASE_URL", "YEOLDA_DATABASE_OWNER_URL", "YEOLDA_SMTP_URL", "YEOLDA_BROKER_URL"}
	if !isSecret && !slices.Contains(withPassword, variable) {
		return variable, ""
	}
	return variable, os.Getenv(variable + fileSuffix)
}
