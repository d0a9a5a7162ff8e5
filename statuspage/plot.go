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
}

// newPlot returns a plot of points sorted by time. format formats a value; empty is the text if all points are gaps.
func newPlot(title string, points []point, format func(float64) string, empty string) plot {
	p := plot{Title: title, Width: plotWidth, Height: plotHeight}
	most, known, last := 0.0, 0, math.NaN()
	for _, at := range points {
		if !math.IsNaN(at.value) {
			most, last = max(most, at.value), at.value
			known++
		}
	}
	switch {
	case len(points) > 1 && known == 0:
		p.Empty = empty
		return p
	case known < 2:
		p.Empty = "A plot needs two samples."
		return p
	}
	from, to := points[0].time, points[len(points)-1].time
	top := roundUp(most)
	p.Now, p.Most, p.Top = format(last), format(most), format(top)
	p.From = shortDuration(to.Sub(from)) + " ago"
	var line, area strings.Builder
	start, end := -1.0, 0.0
	closeArea := func() {
		if start >= 0 {
			fmt.Fprintf(&area, "L%.1f %dL%.1f %dZ", end, plotHeight, start, plotHeight)
		}
		start = -1
	}
	for _, at := range points {
		if math.IsNaN(at.value) {
			closeArea()
			continue
		}
		x := plotWidth * at.time.Sub(from).Seconds() / to.Sub(from).Seconds()
		y := inset + (plotHeight-2*inset)*(1-at.value/top)
		command := "L"
		if start < 0 {
			command, start = "M", x
		}
		end = x
		fmt.Fprintf(&line, "%s%.1f %.1f", command, x, y)
		fmt.Fprintf(&area, "%s%.1f %.1f", command, x, y)
	}
	closeArea()
	p.Line, p.Area = line.String(), area.String()
	return p
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

// shortDuration formats a duration with at most two units.
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}
