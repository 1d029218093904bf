package console

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// AddBranch serves POST /v2/admin/branches: {branch, nameKo, nameEn, address?, phone?, copyFrom?}. copyFrom is the code of a branch
// whose hours, rules, rooms and prices the new one gets.
func (c *Console) AddBranch(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Branch   *string `json:"branch"`
		NameKo   *string `json:"nameKo"`
		NameEn   *string `json:"nameEn"`
		Address  *string `json:"address"`
		Phone    *string `json:"phone"`
		CopyFrom *string `json:"copyFrom"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	var n backoffice.NewBranch
	for _, field := range []struct {
		name string
		from *string
		to   *string
		max  int
		read func(field string, text *string, limit int) (string, error)
	}{
		{"branch", body.Branch, &n.Code, 40, wire.Text},
		{"nameKo", body.NameKo, &n.NameKo, booking.MaxBranchName, wire.Text},
		{"nameEn", body.NameEn, &n.NameEn, booking.MaxBranchName, wire.Text},
		{"address", body.Address, &n.Address, booking.MaxAddress, wire.OptionalText},
		{"phone", body.Phone, &n.Phone, booking.MaxPhone, wire.OptionalText},
	} {
		var err error
		if *field.to, err = field.read(field.name, field.from, field.max); err != nil {
			return err
		}
	}
	if body.CopyFrom != nil {
		var err error
		if n.Like, err = c.Backoffice.Branch(r.Context(), *body.CopyFrom); err != nil {
			return err
		}
	}
	if err := c.Backoffice.AddBranch(r.Context(), n, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{"branch": n.Code})
}
