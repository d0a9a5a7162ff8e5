package kubeapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

var corpora = recording.CorporaFlag()

// TestWriteCorpora is the second half of making corpora, not a test; see package recording.
func TestWriteCorpora(t *testing.T) {
	runs := corpora.Runs(t)
	var answers []recording.Input
	for _, run := range runs {
		for _, line := range run {
			if line.Answer != nil && !line.Answer.Cut {
				answers = append(answers, responseInput(line.Answer))
			}
		}
	}
	corpora.Write(t, "FuzzAnswer", answers)
}

// responseInput makes a response of FuzzAnswer. Refusals differ by their Status, others by their
// size: none, one frame or item, or more.
func responseInput(response *recording.Body) recording.Input {
	things := []string{
		strconv.Itoa(response.Code),
		response.ContentType,
		fmt.Sprint("pause ", response.RetryAfter != ""),
	}
	var status metav1.Status
	if json.Unmarshal(response.Content, &status) == nil && status.Kind == "Status" {
		things = append(things, string(status.Reason))
		if status.Details != nil && len(status.Details.Causes) > 0 {
			things = append(things, string(status.Details.Causes[0].Type))
		}
	} else {
		things = append(things, fmt.Sprint("size ", min(len(response.Content)/200, 3)))
	}
	return recording.NewInput(
		things, uint16(response.Code), response.ContentType, string(response.Content),
		response.RetryAfter, response.Date)
}

func TestRefusalsAreSpecialByTheirReasons(t *testing.T) {
	body := func(code int, content string) recording.Input {
		return responseInput(&recording.Body{Code: code, Content: []byte(content)})
	}
	busy := body(429, statusJSON("429", "TooManyRequests", ""))
	require.NotEqual(t, busy.Features, body(429, statusJSON("429", "Other", "")).Features)
	require.Equal(
		t, busy.Features,
		body(429, statusJSON("429", "TooManyRequests", `,"message":"other"`)).Features)
	require.Equal(t, uint16(429), busy.Values[0])

	date := time.Unix(0, 0).UTC().Format(time.RFC1123)
	paused := responseInput(&recording.Body{Code: 429, RetryAfter: "45", Date: date})
	require.Equal(t, []any{"45", date}, paused.Values[3:])
}
