package enroll

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
)

//go:embed install.sh
var script string

// Install serves the script that puts the agent on a machine and enrolls it at the service's public address.
func Install(publicURL string) http.Handler {
	text := strings.ReplaceAll(script, "@SERVER@", publicURL)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x-shellscript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write([]byte(text))
	})
}

// Command is what is typed on a Pi to enroll it.
func Command(publicURL, token string) string {
	https := ""
	if strings.HasPrefix(publicURL, "https://") {
		https = "--proto =https --tlsv1.2 "
	}
	return fmt.Sprintf("curl %s-fsS %s/install.sh | sudo sh -s -- %s", https, publicURL, token)
}
