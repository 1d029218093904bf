package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// wireSensor is a sensor reading (docs/specification.md, Devices 5).
type wireSensor struct {
	Location    string  `json:"location"`
	Thermometer float64 `json:"thermometer"` // degrees Celsius
	Hygrometer  float64 `json:"hygrometer"`  // percent
}

// readSensors handles POST /admin/thermo-hygrometer/{branch}.
func (a *API) readSensors(w http.ResponseWriter, r *http.Request) error {
	code := chi.URLParam(r, "branch")
	if err := wire.Scope(r, code); err != nil {
		return err
	}
	if _, err := a.Backoffice.Branch(r.Context(), code); err != nil {
		return err
	}
	readings, err := a.Climate.Sensors(r.Context(), code)
	if err != nil {
		return err
	}
	list := make([]wireSensor, len(readings))
	for i, m := range readings {
		list[i] = wireSensor{m.Location, m.Celsius, m.RelativeHumidity}
	}
	return wire.WriteData(w, struct {
		InfoList []wireSensor `json:"infoList"`
	}{list})
}
