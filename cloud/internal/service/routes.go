package service

import (
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/httpapi"
)

// mqttPath is the path of MQTT over WebSocket to the embedded broker.
const mqttPath = "/mqtt"

// routes returns the handler of the public address.
func (s *Service) routes(api *httpapi.API) (http.Handler, error) {
	mux := chi.NewRouter()
	mux.Use(measure, s.deadlines)
	below := api.Routes()
	mux.Mount("/api", below)
	// A method that the router does not know does not reach the mount.
	mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		place, isAPI := strings.CutPrefix(r.URL.Path, "/api")
		if !isAPI {
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		chi.RouteContext(r.Context()).RoutePath = place
		below.ServeHTTP(w, r)
	})
	docs, err := httpapi.Docs()
	if err != nil {
		return nil, err
	}
	mux.Handle(httpapi.DocsPath, docs)
	mux.Handle(httpapi.DocsPath+"/*", docs)
	// Without HEAD, the mount of the pages would answer it, with 404.
	get := func(pattern string, handler http.HandlerFunc) {
		mux.Get(pattern, handler)
		mux.Head(pattern, handler)
	}
	get("/install.sh", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x-shellscript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write([]byte(enroll.Script(api.Site.PublicURL, s.settings.MQTT.AgentReleaseKeys)))
	})
	packages := &enroll.Packages{Folder: s.settings.MQTT.AgentFolder, Version: s.settings.Version}
	get("/packages/{name}", func(w http.ResponseWriter, r *http.Request) { packages.Serve(w, r, chi.URLParam(r, "name")) })
	s.partner.Mount(mux)
	if s.broker != nil {
		mux.HandleFunc(mqttPath, func(w http.ResponseWriter, r *http.Request) { s.broker.ServeWebSocket(w, r, api.ClientAddress(r)) })
	}
	pages, err := s.pages(api, below)
	if err != nil {
		return nil, err
	}
	mux.Mount("/", pages)

	// Browsers send the origin of a request. Callbacks and other clients send none and pass.
	guard := http.NewCrossOriginProtection()
	// A proxy may have replaced the header Host, with which the origin is compared.
	if err := guard.AddTrustedOrigin(api.Site.PublicURL); err != nil {
		return nil, err
	}
	// The key page sends no referrer, so old browsers send "Origin: null" with its form. The key in the path authorizes the
	// request, so there is nothing to forge.
	guard.AddInsecureBypassPattern("POST /k/{key}")
	guard.SetDenyHandler(http.HandlerFunc(api.DenyCrossOrigin))
	return boundBodies(guard.Handler(mux)), nil
}

// metricsOf returns the metrics of the packages and those that this service reads.
func (s *Service) metricsOf() prometheus.Gatherer {
	own := prometheus.NewRegistry()
	own.MustRegister(&vitals{service: s})
	return prometheus.Gatherers{prometheus.DefaultGatherer, own}
}

// operations returns the handler of the operators' address: health, metrics, profiles.
func (s *Service) operations() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metricsOf(), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
