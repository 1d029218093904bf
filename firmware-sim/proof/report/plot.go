package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
)

// plot is a picture of series with common axes.
type plot struct {
	title        string
	xName, yName string
	logX, logY   bool
	series       []part.Series
}

// plots groups a part's series into pictures, in their order.
func plots(p part.Part) (list []*plot) {
	byTitle := map[string]*plot{}
	for _, s := range p.Series {
		title := s.Plot
		if title == "" {
			title = s.Name
		}
		picture := byTitle[title]
		if picture == nil {
			picture = &plot{title: title, xName: s.XName, yName: s.YName, logX: s.LogX, logY: s.LogY}
			byTitle[title] = picture
			list = append(list, picture)
		}
		picture.series = append(picture.series, s)
	}
	return list
}

// The size of a picture and of its margins, in pixels.
const (
	width, height            = 760, 320
	left, right, top, bottom = 64, 30, 14, 46
	legendLine               = 18
)

// colours are distinguishable with most colour vision deficiencies, on white and on black (after Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"}

// axis maps values to pixels.
type axis struct {
	min, max float64
	log      bool
	from, to float64
}

func newAxis(values []float64, log bool, from, to float64) axis {
	a := axis{min: math.Inf(1), max: math.Inf(-1), log: log, from: from, to: to}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0 {
			continue
		}
		a.min, a.max = min(a.min, v), max(a.max, v)
	}
	if math.IsInf(a.min, 0) {
		a.min, a.max = 1, 10
	}
	if log {
		a.min, a.max = math.Pow(10, math.Floor(math.Log10(a.min))), math.Pow(10, math.Ceil(math.Log10(a.max)))
	} else if a.min > 0 {
		a.min = 0
	}
	if a.min == a.max {
		a.max = a.min + 1
		if log {
			a.max = a.min * 10
		}
	}
	return a
}

func (a axis) at(v float64) float64 {
	lo, hi := a.min, a.max
	if a.log {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(max(v, a.min))
	}
	return a.from + (v-lo)/(hi-lo)*(a.to-a.from)
}

// ticks returns round values along an axis.
func (a axis) ticks() (list []float64) {
	if a.log {
		for v := a.min; v <= a.max*1.001; v *= 10 {
			list = append(list, v)
		}
		return list
	}
	step := math.Pow(10, math.Floor(math.Log10((a.max-a.min)/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (a.max-a.min)/(step*factor) <= 6 {
			step *= factor
			break
		}
	}
	for n := math.Ceil(a.min / step); n*step <= a.max*1.0001; n++ {
		list = append(list, n*step)
	}
	return list
}

// svg draws a picture. It is self-contained and inherits the text colour.
func (p *plot) svg() string {
	var xs, ys []float64
	for _, s := range p.series {
		xs, ys = append(xs, s.X...), append(ys, s.Y...)
	}
	legend := legendLine * len(p.series)
	x := newAxis(xs, p.logX, left, width-right)
	y := newAxis(ys, p.logY, height-bottom, top)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui,sans-serif" font-size="12" fill="#777">`, width, height+legend, width, height+legend)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(p.title))
	for _, v := range y.ticks() {
		at := y.at(v)
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#777" stroke-opacity=".25"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, at, width-right, left-6, at+4, number(v))
	}
	for _, v := range x.ticks() {
		at := x.at(v)
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#777" stroke-opacity=".25"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, top, height-bottom, at, height-bottom+16, number(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, (left+width-right)/2, height-10, html.EscapeString(p.xName))
	fmt.Fprintf(&b, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+height-bottom)/2, html.EscapeString(p.yName))
	for i, s := range p.series {
		colour := colours[i%len(colours)]
		if s.Dots {
			for j := range s.X {
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="1.8" fill="%s" fill-opacity=".6"/>`, x.at(s.X[j]), y.at(s.Y[j]), colour)
			}
		} else if len(s.X) > 0 {
			points := make([]string, len(s.X))
			for j := range s.X {
				points[j] = fmt.Sprintf("%.1f %.1f", x.at(s.X[j]), y.at(s.Y[j]))
			}
			fmt.Fprintf(&b, `<path d="M%s" fill="none" stroke="%s" stroke-width="1.8"/>`, strings.Join(points, "L"), colour)
		}
		line := height + legendLine*i + 4
		fmt.Fprintf(&b, `<path d="M%d %dh22" stroke="%s" stroke-width="3"/><text x="%d" y="%d">%s</text>`+"\n", left, line, colour, left+30, line+4, html.EscapeString(s.Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// number formats a tick.
func number(v float64) string {
	if math.Abs(v) >= 1e6 || v != 0 && math.Abs(v) < 1e-3 {
		return fmt.Sprintf("%.0e", v)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
}
