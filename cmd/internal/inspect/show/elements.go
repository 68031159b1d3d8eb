package show

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/tensor"
)

// elements writes the first most elements of v, each with as many digits as distinguish it from its
// neighbors; most 0 means all.
func elements(v tensor.View, most int) (texts []string) {
	d, b := v.DType(), v.Bytes()
	for ; len(b) > 0 && (most <= 0 || len(texts) < most); b = b[d.Size():] {
		texts = append(texts, d.Text(b))
	}
	return texts
}

// numbers turns the output of elements into JSON; a value that is not a JSON number becomes a string.
func numbers(texts []string) []json.RawMessage {
	return dataset.Map(texts, func(s string) json.RawMessage {
		if x, err := strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return json.RawMessage(strconv.Quote(s))
		}
		return json.RawMessage(s)
	})
}
