package statuspage

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// point is a value at a time; NaN is a gap.
type point struct {
	time  time.Time
	value float64
	// isOffScale is true for a value that the scale does not include. It is drawn at the top.
	isOffScale bool
}

// Coordinates of a plot, which the page scales.
const (
	plotWidth  = 600
	plotHeight = 100
	inset      = 2 // room for the width of the line
)

// plot is a line over time as an SVG path, with its labels.
type plot struct {
	Title  string
	Line   string
	Area   string
	Empty  string // reason why there is no line
	Now    string
	Most   string
	Top    string
	From   string
	Width  int
	Height int
	// IsZero is true for a line at 0.
	IsZero bool
}

// newPlot returns a plot of points sorted by time. format formats a value; empty is the text if all
// points are gaps.
func newPlot(title string, points []point, format func(float64) string, empty string) plot {
	p := plot{Title: title, Width: plotWidth, Height: plotHeight}
	most := 0.0
	last := math.NaN()
	known := 0
	isZero := true
	for _, at := range points {
		if math.IsNaN(at.value) {
			continue
		}
		known++
		last = at.value
		isZero = isZero && at.value == 0
		if !at.isOffScale {
			most = max(most, at.value)
		}
	}
	if len(points) > 1 && known == 0 {
		p.Empty = empty
		return p
	}
	if known < 2 {
		p.Empty = "A plot needs two samples."
		return p
	}

	from := points[0].time
	to := points[len(points)-1].time
	top := roundUp(most)
	p.Now = format(last)
	p.Most = format(most)
	p.Top = format(top)
	p.IsZero = isZero
	p.From = shortDuration(to.Sub(from)) + " ago"
	var paths plotPaths
	for _, at := range points {
		if math.IsNaN(at.value) {
			paths.end()
			continue
		}
		x := plotWidth * at.time.Sub(from).Seconds() / to.Sub(from).Seconds()
		y := inset + (plotHeight-2*inset)*(1-min(at.value/top, 1))
		paths.add(x, y)
	}
	paths.end()
	p.Line = paths.line.String()
	p.Area = paths.area.String()
	return p
}

// plotPaths are the line of a plot and the area below it. Both have gaps.
type plotPaths struct {
	line strings.Builder
	area strings.Builder
	// isOpen is true between a gap and the next one. start and last are its first and last x.
	isOpen bool
	start  float64
	last   float64
}

func (p *plotPaths) add(x, y float64) {
	command := "L"
	if !p.isOpen {
		command = "M"
		p.isOpen = true
		p.start = x
	}
	p.last = x
	fmt.Fprintf(&p.line, "%s%.1f %.1f", command, x, y)
	fmt.Fprintf(&p.area, "%s%.1f %.1f", command, x, y)
}

// end closes the area before a gap.
func (p *plotPaths) end() {
	if p.isOpen {
		fmt.Fprintf(&p.area, "L%.1f %dL%.1f %dZ", p.last, plotHeight, p.start, plotHeight)
	}
	p.isOpen = false
}

// roundUp returns the top of a scale: 1, 2 or 5 times a power of ten, and at least 1.
func roundUp(most float64) float64 {
	for scale := 1.0; ; scale *= 10 {
		for _, top := range []float64{scale, 2 * scale, 5 * scale} {
			if top >= most || math.IsInf(top, 0) {
				return top
			}
		}
	}
}

func formatNumber(value float64) string {
	if value < 10 && value != math.Trunc(value) {
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.0f", value)
}

func formatSeconds(value float64) string {
	return shortDuration(time.Duration(value * float64(time.Second)))
}

// shortDuration formats a duration with at most two units, which do not break from their numbers.
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d\u00a0ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f\u00a0s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f\u00a0s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d\u00a0min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d\u00a0h\u00a0%d\u00a0min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d\u00a0d\u00a0%d\u00a0h", int(d.Hours())/24, int(d.Hours())%24)
}
