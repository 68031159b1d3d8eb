package column

import (
	"encoding/json"
	"math/big"
	"strconv"
)

// Feature is the description of a column in datasets of the Hugging Face Hub.
type Feature struct {
	Type  string   `json:"_type"`
	Names []string `json:"names"` // of a ClassLabel's classes
}

// HubFeatures reads the features that the Hugging Face Hub stores next to the schema of Parquet and Arrow, under
// "huggingface". Rows can be read without them, so malformed features are no error.
func HubFeatures(text string) map[string]Feature {
	var meta struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	_ = json.Unmarshal([]byte(text), &meta)
	features := make(map[string]Feature)
	addFeatures(features, "", meta.Info.Features)
	return features
}

// addFeatures adds features, and the features of members of structs and of lists of structs: objects.category.
func addFeatures(features map[string]Feature, prefix string, list map[string]json.RawMessage) {
	for name, raw := range list {
		var f struct {
			Feature
			Inner json.RawMessage `json:"feature"`
		}
		if json.Unmarshal(raw, &f) == nil && f.Type != "" {
			features[prefix+name] = f.Feature
			raw = f.Inner
		}
		var several []json.RawMessage
		if json.Unmarshal(raw, &several) == nil && len(several) == 1 { // older files write a list of one
			raw = several[0]
		}
		var inner map[string]json.RawMessage
		if json.Unmarshal(raw, &inner) != nil {
			continue
		}
		if json.Unmarshal(raw, &f.Feature) == nil && f.Type == "ClassLabel" { // a list of labels
			features[prefix+name] = f.Feature
		} else if inner["_type"] == nil {
			addFeatures(features, prefix+name+".", inner)
		}
	}
}

// TwosComplement returns a big-endian integer.
func TwosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// Decimal returns the float64 that is nearest to unscaled / 10^scale. A number that is too large becomes infinite.
func Decimal(unscaled *big.Int, scale int) float64 {
	x, _ := strconv.ParseFloat(unscaled.String()+"e"+strconv.Itoa(-scale), 64)
	return x
}
