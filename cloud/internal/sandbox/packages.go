package sandbox

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/yeolda/yeolda/protocol"
)

// showPackages handles GET /packages/yeolda-agent_VERSION.json: the signed packages of any version of the agent. Simulated
// agents change their version without them; a real agent rejects the demo release key.
func showPackages(w http.ResponseWriter, r *http.Request) {
	version, ok := strings.CutPrefix(r.PathValue("name"), "yeolda-agent_")
	version, manifest := strings.CutSuffix(version, ".json")
	if !ok || !manifest || !protocol.ValidVersion(version) {
		http.NotFound(w, r)
		return
	}
	seed := sha256.Sum256([]byte("yeolda demo release key"))
	hash := sha256.Sum256([]byte(version))
	p := protocol.SignPackage(ed25519.NewKeyFromSeed(seed[:]), version, protocol.Package{
		Architecture: "arm64", URL: "yeolda-agent_" + version + "_arm64.deb", SHA256: hex.EncodeToString(hash[:])})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(protocol.Update{Version: version, Packages: []protocol.Package{p}}) // the client is gone
}
