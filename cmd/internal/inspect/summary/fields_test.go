package summary

import (
	"encoding/json"
	"testing"
)

func TestAttributesWithoutJSON(t *testing.T) {
	nan := asJSON([]float64{1, 0 / zero, 1 / zero})
	got, err := json.Marshal(nan)
	if err != nil || string(got) != `[1,"NaN","+Inf"]` {
		t.Errorf("got %s, %v", got, err)
	}
}

var zero float64
