package rechunk

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// attributesOf returns the attributes of an array that another program wrote: units, calendars, long names.
func attributesOf(path string, a *Array) (map[string]any, error) {
	list := make(map[string]any)
	d, err := store.Open(path, store.OpenOptions{Fields: []string{a.Name}, Packed: true})
	if err != nil {
		return nil, err
	}
	of := layout.Of(d)
	if from := of.Arrays[a.Name]; from != nil {
		for name, value := range from.Attributes {
			if name != "_ARRAY_DIMENSIONS" {
				list[name] = json.RawMessage(value)
			}
		}
	}
	if of.File == nil {
		return list, nil
	}
	data, err := of.File.Dataset(a.Name)
	if err != nil {
		return nil, err
	}
	for _, attr := range data.Attrs {
		if value := attr.Value.Any(); attr.Err == nil && value != nil && !isLayout(attr.Name) && hasJSON(value) {
			list[attr.Name] = value
		}
	}
	return list, nil
}

// isLayout reports whether an attribute is about how HDF5 stores an array, and not about the array.
func isLayout(name string) bool {
	switch name {
	case "CLASS", "NAME", "DIMENSION_LIST", "DIMENSION_LABELS", "REFERENCE_LIST", "_FillValue":
		return true
	}
	return strings.HasPrefix(name, "_Netcdf4") || strings.HasPrefix(name, "_NC")
}

// hasJSON reports whether an attribute can be written: JSON has no NaN and no infinity.
func hasJSON(value any) bool {
	x, ok := value.(float64)
	if ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
		return false
	}
	_, err := json.Marshal(value)
	return err == nil
}
