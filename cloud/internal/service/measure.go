package service

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/yeolda/yeolda/cloud/internal/tracing"
)

var (
	requestsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "yeolda_http_requests_total", Help: "Requests that were answered, by route pattern and status.",
	}, []string{"method", "route", "code"})
	requestSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "yeolda_http_request_duration_seconds", Help: "How long an answer took. A subscription to a door waits for its result.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 7.5, 10, 30},
	}, []string{"method", "route"})
	requestsInFlight = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "yeolda_http_requests_in_flight", Help: "Requests that wait for their answer.",
	})
)

// methods are those that a label may name, because a client may invent others.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// finish ends the span of a request.
func finish(span tracing.Span, method, route string, status int) {
	span.Name(method + " " + route)
	span.Set("http.request.method", method)
	span.Set("http.route", route)
	span.Set("http.response.status_code", strconv.Itoa(status))
	var err error
	if status >= http.StatusInternalServerError {
		err = errors.New(http.StatusText(status))
	}
	span.End(err)
}

// measure counts requests by the pattern of their route, because a path may contain a key and paths are unlimited.
func measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == mqttPath { // a connection that lasts for days
			next.ServeHTTP(w, r)
			return
		}
		requestsInFlight.Inc()
		defer requestsInFlight.Dec()
		began := time.Now()
		recorder := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		ctx, span := tracing.Root(r.Context(), "HTTP")
		if tracing.On() {
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(recorder, r)
		method := r.Method
		if !slices.Contains(methods, method) {
			method = "other"
		}
		route := chi.RouteContext(r.Context()).RoutePattern()
		status := recorder.Status()
		if status == 0 { // nothing was written: net/http answers 200, or the client is gone
			status = http.StatusOK
		}
		requestsTotal.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
		requestSeconds.WithLabelValues(method, route).Observe(time.Since(began).Seconds())
		if tracing.On() {
			finish(span, method, route, status)
		}
	})
}
