package broker

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	agentsGauge = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "yeolda_mqtt_agents", Help: "Agents connected to the embedded broker.",
	})
	refusedTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "yeolda_mqtt_refused_total", Help: "Connections to the embedded broker rejected because of their credentials.",
	})
	takeoversTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "yeolda_mqtt_takeovers_total", Help: "Connections with the credential of an agent that was connected from another machine.",
	})
	droppedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "yeolda_mqtt_dropped_total", Help: "Messages dropped: from agents at a full queue (in), to agents that do not read (out).",
	}, []string{"direction"})
	droppedIn, droppedOut = droppedTotal.WithLabelValues("in"), droppedTotal.WithLabelValues("out")
)
