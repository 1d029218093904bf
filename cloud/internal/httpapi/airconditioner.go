package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// airConditionerOptions is GET /admin/airconditioner/{branch}. The protocol's tree is the interface's.
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

// commandAirConditioner is POST /admin/airconditioner/{airconditioner_id}. The branch is the option's own.
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
