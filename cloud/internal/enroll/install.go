package enroll

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed install.sh
var script string

// Script puts the agent on a machine and enrolls it at the service's public address. It installs only packages that one of the
// release keys (base64) has signed; without keys it fetches none.
func Script(publicURL string, releaseKeys []string) string {
	return strings.NewReplacer("@SERVER@", publicURL, "@KEYS@", strings.Join(releaseKeys, " ")).Replace(script)
}

// Command is what is typed on a Pi to enroll it.
func Command(publicURL, token string) string {
	https := ""
	if strings.HasPrefix(publicURL, "https://") {
		https = "--proto =https --tlsv1.2 "
	}
	return fmt.Sprintf("curl %s-fsS %s/install.sh | sudo sh -s -- %s", https, publicURL, token)
}
