package column

import (
	"encoding/json"
	"math/big"
	"strconv"
)

// Feature is the description of a column in a dataset of the Hugging Face Hub.
type Feature struct {
	Type  string   `json:"_type"`
	Names []string `json:"names"` // class names of a ClassLabel, in the order of their numbers
}

// HubFeatures reads the features that the datasets library stores in the metadata of Parquet and Arrow under
// "huggingface". They only add class names and content to columns that can be read without them, so malformed
// features are ignored.
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

// addFeatures adds features under prefix, and the features of the members of structs and of lists of structs under
// dotted names, as in objects.category.
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

// TwosComplement returns the integer that b is in big-endian two's complement.
func TwosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// Decimal returns the float64 that is nearest to unscaled / 10^scale. It goes through text, as strconv rounds
// correctly and a division of floats would round twice. A number that is too large becomes infinite.
func Decimal(unscaled *big.Int, scale int) float64 {
	x, _ := strconv.ParseFloat(unscaled.String()+"e"+strconv.Itoa(-scale), 64)
	return x
}
