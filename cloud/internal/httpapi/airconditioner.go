package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// airConditionerOptions handles GET /admin/airconditioner/{branch}. It returns the protocol's option tree unchanged.
func (a *API) airConditionerOptions(w http.ResponseWriter, r *http.Request) error {
	branch := chi.URLParam(r, "branch")
	if err := wire.Scope(r, branch); err != nil {
		return err
	}
	tree, err := a.Climate.Tree(r.Context(), branch)
	if err != nil {
		return err
	}
	return wire.WriteData(w, tree)
}

// commandAirConditioner handles POST /admin/airconditioner/{airconditioner_id}. The option determines the branch.
func (a *API) commandAirConditioner(w http.ResponseWriter, r *http.Request) error {
	option := chi.URLParam(r, "airconditioner_id")
	branch, err := a.Climate.BranchOfOption(r.Context(), option)
	if err != nil {
		return err
	}
	if err := wire.Scope(r, branch); err != nil {
		return err
	}
	if err := a.Climate.Command(r.Context(), wire.Principal(r).Actor(), option); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
