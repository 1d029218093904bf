package enroll

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed install.sh
var script string

// Script puts the agent on a machine and enrolls it at the service's public address.
func Script(publicURL string) string { return strings.ReplaceAll(script, "@SERVER@", publicURL) }

// Command is what is typed on a Pi to enroll it.
func Command(publicURL, token string) string {
	https := ""
	if strings.HasPrefix(publicURL, "https://") {
		https = "--proto =https --tlsv1.2 "
	}
	return fmt.Sprintf("curl %s-fsS %s/install.sh | sudo sh -s -- %s", https, publicURL, token)
}
