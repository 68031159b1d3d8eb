package show

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/tensor"
)

// elements returns the first `most` elements of v as texts, all if most is 0. A float has the
// fewest digits from which the same float is read back.
func elements(v tensor.View, most int) (texts []string) {
	d, b := v.DType(), v.Bytes()
	for ; len(b) > 0 && (most <= 0 || len(texts) < most); b = b[d.Size():] {
		texts = append(texts, d.Text(b))
	}
	return texts
}

// numbers turns the texts of elements into JSON. NaN and infinities, which JSON has no numbers for,
// become strings.
func numbers(texts []string) []json.RawMessage {
	return dataset.Map(texts, func(s string) json.RawMessage {
		if x, err := strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return json.RawMessage(strconv.Quote(s))
		}
		return json.RawMessage(s)
	})
}
