package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// done writes the audit entry of an administrator's deed at a branch and answers 200 with data, or null.
func (a *API) done(w http.ResponseWriter, r *http.Request, branch, action, target string, detail any, data ...any) error {
	if err := a.audit(r, branch, action, target, detail); err != nil {
		return err
	}
	if len(data) > 0 {
		return wire.WriteData(w, data[0])
	}
	return wire.WriteData(w, nil)
}

// audit notes who did what at which branch.
func (a *API) audit(r *http.Request, branch, action, target string, detail any) error {
	return a.Backoffice.Record(r.Context(), audit.Entry{
		Actor: wire.Principal(r).Actor(), Branch: branch, Action: action, Target: target, Detail: detail,
	})
}
