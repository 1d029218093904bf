package enroll

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"
)

// Packages serves the signed packages of the agent from a folder, as `make deb` and `yeolda agent release sign` name them:
//
//	yeolda-agent_VERSION_ARCHITECTURE.deb, the same with .sig, yeolda-agent_VERSION.json
//
// yeolda-agent_ARCHITECTURE.deb is the package of the service's own version, for install.sh.
type Packages struct {
	Folder  string
	Version string // of the service, as the linker sets it
}

// downloadTimeout is the time a Pi on a slow line has for a package of some megabytes.
const downloadTimeout = 15 * time.Minute

var (
	fittingName   = regexp.MustCompile(`^yeolda-agent_([a-z0-9]+)\.deb(\.sig)?$`)
	versionedName = regexp.MustCompile(`^yeolda-agent_[0-9][A-Za-z0-9.+~-]*(_[a-z0-9]+\.deb(\.sig)?|\.json)$`)
)

// Serve answers a request for a file.
func (p *Packages) Serve(w http.ResponseWriter, r *http.Request, name string) {
	file, err := p.open(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTimeout)) // not a connection of net/http in tests
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", info.ModTime(), file)
}

var errNoFile = errors.New("no such file")

// open opens a file of the folder. The error is shown to the client.
func (p *Packages) open(name string) (*os.File, error) {
	match := fittingName.FindStringSubmatch(name)
	if match == nil && !versionedName.MatchString(name) {
		return nil, errNoFile
	}
	folder, err := os.OpenRoot(p.Folder)
	if err != nil {
		return nil, p.missing(match, "no package of the agent")
	}
	defer folder.Close()
	if match == nil {
		if file, err := folder.Open(name); err == nil {
			return file, nil
		}
		return nil, errNoFile
	}
	fitting := "yeolda-agent_" + p.version() + "_" + match[1] + ".deb"
	if _, err := folder.Stat(fitting + ".sig"); err != nil {
		return nil, p.missing(match, "no signature of the agent's package")
	}
	file, err := folder.Open(fitting + match[2])
	if errors.Is(err, fs.ErrNotExist) {
		return nil, p.missing(match, "no package of the agent")
	}
	return file, err
}

func (p *Packages) missing(match []string, what string) error {
	if match == nil {
		return errNoFile
	}
	return fmt.Errorf("this service has %s of version %s for %s in its YEOLDA_AGENT_FOLDER", what, p.version(), match[1])
}

// version is the version in the names of packages, which have no v.
func (p *Packages) version() string { return strings.TrimPrefix(p.Version, "v") }
